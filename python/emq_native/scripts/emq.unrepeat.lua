-- EMQ.UNREPEAT q name -> 1, 0 there is no such name
-- uses: arity queue repeat_name see
arity(1, 1)
queue()
local name = repeat_name(ARGV[1])
see(BASE .. 'repeat', 'zset')
see(BASE .. 'repeat:' .. name, 'hash')
local listed = call('ZREM', BASE .. 'repeat', name)
local kept = call('DEL', BASE .. 'repeat:' .. name)
return math.max(listed, kept)
