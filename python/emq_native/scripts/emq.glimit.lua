-- EMQ.GLIMIT q group ceiling -> 1; a ceiling of 0 is none
-- uses: arity queue group_name number see lanes tune keep_lanes search
arity(2, 2)
queue()
local group = group_name(ARGV[1])
local ceiling = number('ceiling', ARGV[2], 0, 2147483647)
local lane = see_lane(group)
see(BASE .. 'gweight', 'hash')
if ceiling == 0 then
    call('HDEL', BASE .. 'glimit', group)
else
    call('HSET', BASE .. 'glimit', group, ARGV[2])
end
lane.ceiling = ceiling
search(group, lane)
tune(group, lane)
keep_lanes()
return 1
