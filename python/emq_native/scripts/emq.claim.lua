-- EMQ.CLAIM q lease -> [id, payload, attempts] or []
-- uses: arity queue number clock digits direct_flush serve_flat
arity(1, 1)
queue()
local now = clock()
local deadline = now + number('lease', ARGV[1], 1, M, now)
local taken = serve_flat(digits(deadline), 1)[1]
return taken and { taken[1], taken[2], taken[3] } or {}
