-- EMQ.DELAY q id token IN|AT ms -> 1
-- uses: arity queue due job_id see owner stored remove_now add_now leave
arity(4, 4)
local word = timing(ARGV[3])
queue()
local time = due(word, ARGV[4])
local id = job_id(ARGV[1])
see('pending', 'zset')
see('schedule', 'zset')
local job, at = owner(id, ARGV[2], 'delay')
if not job then
    error('EMQSTALE job gone', 0)
end
see_lane(job.group)
leave(id, job, at)
if job.reaped then
    redis.call('HDEL', KEYS[1] .. ':job:' .. id, 'reaped')
end
redis.call('HSET', KEYS[1] .. ':job:' .. id, 'floor', digits(stored(job.floor) + 1), 'state', 'scheduled')
add('schedule', time, id)
if lanes then
    lanes.keep()
end
return 1
