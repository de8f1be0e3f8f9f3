-- EMQ.GCLAIM q lease -> [id, payload, attempts, group] or []
-- uses: arity queue number clock digits direct_flush serve_lane
arity(1, 1)
queue()
local now = clock()
local deadline = now + number('lease', ARGV[1], 1, M, now)
local taken = serve_lane(digits(deadline), function()
    return 1
end)
return taken[1] or {}
