-- EMQ.CLAIM q lease -> [id, payload, attempts] or []
-- uses: arity queue lease remove_now add_now serve_flat
arity(1, 1)
queue()
local taken = serve_flat(lease(ARGV[1]), 1)[1]
return taken and { taken[1], taken[2], taken[3] } or {}
