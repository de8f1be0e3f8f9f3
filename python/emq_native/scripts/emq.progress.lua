-- EMQ.PROGRESS q id text -> 1, -1 there is no such job
-- uses: arity queue job_id see
arity(2, 2)
queue()
local id = job_id(ARGV[1])
local row = BASE .. 'job:' .. id
if not see(row, 'hash') then
    return -1
end
local text = string.gsub(ARGV[2], '[%z\1-\31"\\]', function(byte)
    if byte == '"' or byte == '\\' then
        return '\\' .. byte
    end
    return string.format('\\u%04x', string.byte(byte))
end)
call('HSET', row, 'progress', ARGV[2])
call('PUBLISH', BASE .. 'events', '{"event":"progress","job":"' .. id .. '","progress":"' .. text .. '"}')
return 1
