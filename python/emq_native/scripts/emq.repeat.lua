-- EMQ.REPEAT q name EVERY ms template [AT first] -> 1, 0 the name exists
-- uses: arity options queue repeat_name number clock digits see
arity(4)
if string.upper(ARGV[2]) ~= 'EVERY' then
    error('ERR syntax error', 0)
end
local given = options(5, { AT = true })
queue()
local name = repeat_name(ARGV[1])
local now = clock()
local every = number('every', ARGV[3], 1, nil, now)
local first = given.AT and number('at', given.AT, 0) or now + every
see('repeat', 'zset')
if see('repeat:' .. name, 'hash') then
    return 0
end
redis.call('HSET', KEYS[1] .. ':repeat:' .. name, 'every_ms', ARGV[3], 'template', ARGV[4])
redis.call('ZADD', KEYS[1] .. ':repeat', digits(first), name)
return 1
