-- EMQ.FIRE q name next id -> 1 the job of this run was admitted, 0 it is not due, was fired, or the id exists
-- uses: arity queue repeat_name number clock job_id see admit
arity(3, 3)
queue()
local name = repeat_name(ARGV[1])
local next_run = number('next', ARGV[2], 0, M)
local id = job_id(ARGV[3])
local key, names = BASE .. 'repeat:' .. name, BASE .. 'repeat'
local due = tonumber(call('ZSCORE', names, name) or nil)
local known = see(key, 'hash')
see(BASE .. 'pending', 'zset')
local exists = see(row(id), 'hash')
if not due then
    return 0
end
if not known then
    call('ZREM', names, name)
    return 0
end
if due > clock() or next_run <= due or exists then
    return 0
end
call('ZADD', names, ARGV[2], name)
admit(id, 'pending', call('HGET', key, 'template') or '')
call('ZADD', BASE .. 'pending', 0, id)
return 1
