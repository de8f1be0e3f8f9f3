-- EMQ.UPDATE q id payload -> 1, -1 there is no such job
-- uses: arity queue job_id see
arity(2, 2)
queue()
local id = job_id(ARGV[1])
if not see('job:' .. id, 'hash') then
    return -1
end
redis.call('HSET', KEYS[1] .. ':job:' .. id, 'payload', ARGV[2])
return 1
