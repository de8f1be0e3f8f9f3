-- EMQ.DELAY q id token IN|AT ms -> 1
-- uses: arity queue due clock job_id see owner stored digits direct leave row keep_lanes
arity(4, 4)
local word = timing(ARGV[3])
queue()
local time = due(word, ARGV[4], clock())
local id = job_id(ARGV[1])
see(BASE .. 'pending', 'zset')
see(BASE .. 'schedule', 'zset')
local job, at = owner(id, ARGV[2], 'delay')
if not job then
    refuse('EMQSTALE job gone')
end
see_lane(job.group)
leave(id, job, at)
if job.reaped then
    call('HDEL', row(id), 'reaped')
end
call('HSET', row(id), 'floor', digits(stored(job.floor) + 1), 'state', 'scheduled')
add(BASE .. 'schedule', digits(time), id)
keep_lanes()
return 1
