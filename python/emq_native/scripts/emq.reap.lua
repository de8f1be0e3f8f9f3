-- EMQ.REAP q [LIMIT n] [MAX m] -> how many expired leases were ended
-- uses: arity options queue reaping clock digits see metrics leased live reap
arity(0)
local given = options(1, { LIMIT = true, MAX = true })
queue()
local limit, max = reaping(given)
see('pending', 'zset')
see('dead', 'zset')
see_metric('failed')
local late = redis.call('ZRANGE', KEYS[1] .. ':active', '-inf', digits(clock()), 'BYSCORE', 'LIMIT', 0, limit)
for at, id in ipairs(late) do
    local job = leased(id)
    late[at] = { id, live(id, job, 'active') and job or nil }
end
return reap(late, max)
