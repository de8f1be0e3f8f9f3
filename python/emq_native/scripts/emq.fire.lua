-- EMQ.FIRE q name next id -> 1 the job of this run was admitted, 0 it is not due, was fired, or the id exists
-- uses: arity queue repeat_name number clock job_id see admit
arity(3, 3)
queue()
local name = repeat_name(ARGV[1])
local following = number('next', ARGV[2], 0)
local id = job_id(ARGV[3])
local names, template = KEYS[1] .. ':repeat', KEYS[1] .. ':repeat:' .. name
local due = redis.call('ZSCORE', names, name)
local known = see('repeat:' .. name, 'hash')
see('pending', 'zset')
local exists = see('job:' .. id, 'hash')
if not due then
    return 0
end
if not known then
    redis.call('ZREM', names, name)
    return 0
end
if tonumber(due) > clock() or following <= tonumber(due) or exists then
    return 0
end
redis.call('ZADD', names, ARGV[2], name)
admit(id, 'pending', redis.call('HGET', template, 'template') or '')
redis.call('ZADD', KEYS[1] .. ':pending', '0', id)
return 1
