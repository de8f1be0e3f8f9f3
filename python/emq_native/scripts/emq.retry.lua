-- EMQ.RETRY q id token delay max error -> scheduled, or dead when max runs are used up
-- uses: arity queue number clock job_id see metrics owner last digits direct_flush leave fail_up keep_lanes
arity(5, 5)
queue()
local now = clock()
local time = now + number('delay', ARGV[3], 0, M, now)
local max = number('max', ARGV[4], 1, 2147483647)
local id = job_id(ARGV[1])
see(BASE .. 'pending', 'zset')
see(BASE .. 'schedule', 'zset')
see(BASE .. 'dead', 'zset')
see_metric('failed')
local job, at = owner(id, ARGV[2], 'retry')
if not job then
    refuse('EMQSTALE job gone')
end
see_lane(job.group)
local dies = last(job, max)
if dies then
    see_up(job, true)
end
leave(id, job, at)
if job.reaped then
    call('HDEL', row(id), 'reaped')
end
if dies then
    die(id, job, ARGV[5], 0)
else
    call('HSET', row(id), 'last_error', ARGV[5], 'state', 'scheduled')
    add(BASE .. 'schedule', digits(time), id)
end
keep_lanes()
keep_metrics()
return dies and 'dead' or 'scheduled'
