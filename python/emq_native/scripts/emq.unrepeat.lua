-- EMQ.UNREPEAT q name -> 1, 0 there is no such name
-- uses: arity queue repeat_name see
arity(1, 1)
queue()
local name = repeat_name(ARGV[1])
see('repeat', 'zset')
see('repeat:' .. name, 'hash')
local listed = redis.call('ZREM', KEYS[1] .. ':repeat', name)
local kept = redis.call('DEL', KEYS[1] .. ':repeat:' .. name)
return math.max(listed, kept)
