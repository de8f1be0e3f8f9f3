-- EMQ.GWCLAIM q lease -> [id, payload, attempts, group] for as many jobs of one lane as its weight says
-- uses: arity queue number clock digits stored see batched serve_lane
arity(1, 1)
queue()
local now = clock()
local deadline = now + number('lease', ARGV[1], 1, M, now)
local weights = BASE .. 'gweight'
see(weights, 'hash')
return serve_lane(digits(deadline), function(group)
    return math.max(1, math.min(10000, stored(call('HGET', weights, group))))
end)
