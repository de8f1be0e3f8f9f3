-- EMQ.MCLAIM q lease count -> [id, payload, attempts] for each of at most count jobs, all with one deadline
-- uses: arity queue lease number remove_later add_later serve_flat
arity(2, 2)
queue()
local deadline = lease(ARGV[1])
local taken = serve_flat(deadline, number('count', ARGV[2], 1, 10000))
flush_removed()
flush_added()
for _, job in ipairs(taken) do
    job[4] = nil
end
return taken
