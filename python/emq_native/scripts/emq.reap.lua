-- EMQ.REAP q [LIMIT n] [MAX m] -> how many expired leases were ended
-- uses: arity options queue reaping clock digits see metrics load settled place batched reap
arity(0)
local given = options(1, { LIMIT = true, MAX = true })
queue()
local limit, max = reaping(given)
local active = BASE .. 'active'
see(BASE .. 'pending', 'zset')
see(BASE .. 'dead', 'zset')
see_metric('failed')
local late = call('ZRANGE', active, '-inf', digits(clock()), 'BYSCORE', 'LIMIT', 0, limit)
for at, id in ipairs(late) do
    local job = load(id, SETTLED)
    late[at] = { id, job and (home(job) == active or place(id, job) == active) and job or nil }
end
return reap(late, max)
