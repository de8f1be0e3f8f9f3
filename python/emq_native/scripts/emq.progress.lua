-- EMQ.PROGRESS q id text -> 1, -1 there is no such job
-- uses: arity queue job_id see
arity(2, 2)
queue()
local id = job_id(ARGV[1])
if not see('job:' .. id, 'hash') then
    return -1
end
local text = string.gsub(ARGV[2], '[%z\1-\31"\\]', function(byte)
    if byte == '"' or byte == '\\' then
        return '\\' .. byte
    end
    return string.format('\\u%04x', string.byte(byte))
end)
redis.call('HSET', KEYS[1] .. ':job:' .. id, 'progress', ARGV[2])
redis.call('PUBLISH', KEYS[1] .. ':events', '{"event":"progress","job":"' .. id .. '","progress":"' .. text .. '"}')
return 1
