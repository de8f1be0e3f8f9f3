-- EMQ.ENQUEUE q id payload -> 1 admitted, 0 the id exists
-- uses: arity queue job_id see admit
arity(2, 2)
queue()
local id = job_id(ARGV[1])
see('pending', 'zset')
if see('job:' .. id, 'hash') then
    return 0
end
admit(id, 'pending', ARGV[2])
redis.call('ZADD', KEYS[1] .. ':pending', '0', id)
return 1
