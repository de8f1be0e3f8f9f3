-- EMQ.MCLAIM q lease count -> [id, payload, attempts] for each of at most count jobs, all with one deadline
-- uses: arity queue number clock digits batched serve_flat
arity(2, 2)
queue()
local now = clock()
local deadline = now + number('lease', ARGV[1], 1, M, now)
local taken = serve_flat(digits(deadline), number('count', ARGV[2], 1, 10000))
for _, job in ipairs(taken) do
    job[4] = nil
end
return taken
