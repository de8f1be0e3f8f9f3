-- EMQ.REPROCESS q id -> 1 the dead job waits again, -1 there is no such job
-- uses: arity queue job_id see moving place lanes remove_now add_now leave join
arity(1, 1)
queue()
local id = job_id(ARGV[1])
local score = redis.call('ZSCORE', KEYS[1] .. ':dead', id)
see('pending', 'zset')
local job = moving(id)
if not job then
    return -1
end
if place(id, job, { dead = score }) ~= 'dead' then
    error('EMQSTATE not dead', 0)
end
see_lane(job.group)
leave(id, job, 'dead')
redis.call('HDEL', KEYS[1] .. ':job:' .. id, 'last_error')
join(id, job, 'floor', job.attempts or '0')
return 1
