-- EMQ.GWEIGHT q group weight -> 1; a weight of 0 is that of 1
-- uses: arity queue group_name number see lanes
arity(2, 2)
queue()
local group = group_name(ARGV[1])
local weight = number('weight', ARGV[2], 0, 10000)
local weights = BASE .. 'gweight'
see_lane(group)
see(weights, 'hash')
if weight == 0 then
    call('HDEL', weights, group)
else
    call('HSET', weights, group, ARGV[2])
end
return 1
