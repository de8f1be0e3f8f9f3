-- EMQ.GLIMIT q group ceiling -> 1; a ceiling of 0 is none
-- uses: arity queue group_name number see lanes search
arity(2, 2)
queue()
local group = group_name(ARGV[1])
local ceiling = number('ceiling', ARGV[2], 0, 2147483647)
local lane = see_lane(group)
see('gweight', 'hash')
if ceiling == 0 then
    redis.call('HDEL', KEYS[1] .. ':glimit', group)
else
    redis.call('HSET', KEYS[1] .. ':glimit', group, ARGV[2])
end
lane.ceiling = ceiling
search(group)
return 1
