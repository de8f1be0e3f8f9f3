-- EMQ.GRESUME q group -> 1
-- uses: arity queue group_name see lanes search
arity(1, 1)
queue()
local group = group_name(ARGV[1])
local lane = see_lane(group)
see('gweight', 'hash')
redis.call('SREM', KEYS[1] .. ':paused', group)
lane.parked = false
search(group)
return 1
