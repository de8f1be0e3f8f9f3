-- EMQ.EXTEND q id token lease -> 1, -1 there is no such job
-- uses: arity queue lease job_id moving place
arity(3, 3)
queue()
local deadline = lease(ARGV[3])
local id = job_id(ARGV[1])
local score = redis.call('ZSCORE', KEYS[1] .. ':active', id)
local job = moving(id)
if not job then
    return -1
end
if job.attempts ~= ARGV[2] then
    error('EMQSTALE extend token mismatch', 0)
end
if place(id, job, { active = score }) ~= 'active' then
    error('EMQSTATE job is not active', 0)
end
redis.call('ZADD', KEYS[1] .. ':active', deadline, id)
return 1
