-- EMQ.REPEAT q name EVERY ms template [AT first] -> 1, 0 the name exists
-- uses: arity options queue repeat_name number clock digits see
arity(4)
if string.upper(ARGV[2]) ~= 'EVERY' then
    refuse('ERR syntax error')
end
local given = options(5, { AT = true })
queue()
local name = repeat_name(ARGV[1])
local now = clock()
local every = number('every', ARGV[3], 1, M, now)
local first = given.AT and number('at', given.AT, 0, M) or now + every
local key = BASE .. 'repeat:' .. name
see(BASE .. 'repeat', 'zset')
if see(key, 'hash') then
    return 0
end
call('HSET', key, 'every_ms', ARGV[3], 'template', ARGV[4])
call('ZADD', BASE .. 'repeat', digits(first), name)
return 1
