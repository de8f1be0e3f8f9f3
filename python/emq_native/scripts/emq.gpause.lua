-- EMQ.GPAUSE q group -> 1
-- uses: arity queue group_name see lanes tune keep_lanes
arity(1, 1)
queue()
local group = group_name(ARGV[1])
local lane = see_lane(group)
see(BASE .. 'gweight', 'hash')
call('SADD', BASE .. 'paused', group)
lane.parked = true
tune(group, lane)
keep_lanes()
return 1
