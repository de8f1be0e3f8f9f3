-- EMQ.RETRY q id token delay max error -> scheduled, or dead when max runs are used up
-- uses: arity queue number clock digits job_id see metrics owner last remove_now add_now leave die
arity(5, 5)
queue()
local now = clock()
local time = digits(now + number('delay', ARGV[3], 0, nil, now))
local max = number('max', ARGV[4], 1, 2147483647)
local id = job_id(ARGV[1])
see('pending', 'zset')
see('schedule', 'zset')
see('dead', 'zset')
see_metric('failed')
local job, at = owner(id, ARGV[2], 'retry')
if not job then
    error('EMQSTALE job gone', 0)
end
see_lane(job.group)
local dies = last(job, max)
if dies then
    see_up(job, true)
end
leave(id, job, at)
if job.reaped then
    redis.call('HDEL', KEYS[1] .. ':job:' .. id, 'reaped')
end
if dies then
    die(id, job, ARGV[5])
    keep_metrics()
else
    redis.call('HSET', KEYS[1] .. ':job:' .. id, 'last_error', ARGV[5], 'state', 'scheduled')
    add('schedule', time, id)
end
if lanes then
    lanes.keep()
end
return dies and 'dead' or 'scheduled'
