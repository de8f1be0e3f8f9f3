-- EMQ.GCLAIM q lease -> [id, payload, attempts, group] or []
-- uses: arity queue lease remove_now add_now serve_lane
arity(1, 1)
queue()
local taken = serve_lane(lease(ARGV[1]), function()
    return 1
end)
return taken[1] or {}
