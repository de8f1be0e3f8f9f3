-- EMQ.GENQUEUE q group id payload -> 1 admitted, 0 the id exists
-- uses: arity queue group_name job_id see lanes admit
arity(3, 3)
queue()
local group = group_name(ARGV[1])
local id = job_id(ARGV[2])
local lane = see_lane(group)
if see('job:' .. id, 'hash') then
    return 0
end
admit(id, 'pending', ARGV[3], 'group', group)
redis.call('ZADD', KEYS[1] .. ':' .. lane.name, '0', id)
lanes.wait(group, 1)
return 1
