-- EMQ.GPAUSE q group -> 1
-- uses: arity queue group_name see lanes
arity(1, 1)
queue()
local group = group_name(ARGV[1])
local lane = see_lane(group)
see('gweight', 'hash')
redis.call('SADD', KEYS[1] .. ':paused', group)
lane.parked = true
lanes.tune(group)
return 1
