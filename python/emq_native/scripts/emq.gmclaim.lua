-- EMQ.GMCLAIM q lease count -> [id, payload, attempts, group] for each of at most count jobs of one lane
-- uses: arity queue lease number remove_later add_later serve_lane
arity(2, 2)
queue()
local deadline = lease(ARGV[1])
local most = number('count', ARGV[2], 1, 10000)
local taken = serve_lane(deadline, function()
    return most
end)
flush_removed()
flush_added()
return taken
