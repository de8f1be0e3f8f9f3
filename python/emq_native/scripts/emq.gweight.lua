-- EMQ.GWEIGHT q group weight -> 1; a weight of 0 is that of 1
-- uses: arity queue group_name number see
arity(2, 2)
queue()
local group = group_name(ARGV[1])
local weight = number('weight', ARGV[2], 0, 10000)
see('g:' .. group .. ':pending', 'zset')
see('ring', 'list')
see('wake', 'list')
see('lanes', 'set')
see('paused', 'set')
see('glimit', 'hash')
see('gactive', 'hash')
see('gweight', 'hash')
if weight == 0 then
    redis.call('HDEL', KEYS[1] .. ':gweight', group)
else
    redis.call('HSET', KEYS[1] .. ':gweight', group, ARGV[2])
end
return 1
