-- EMQ.GMCLAIM q lease count -> [id, payload, attempts, group] for each of at most count jobs of one lane
-- uses: arity queue number clock digits batched serve_lane
arity(2, 2)
queue()
local now = clock()
local deadline = now + number('lease', ARGV[1], 1, M, now)
local most = number('count', ARGV[2], 1, 10000)
return serve_lane(digits(deadline), function()
    return most
end)
