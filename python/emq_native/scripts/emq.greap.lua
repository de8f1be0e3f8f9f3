-- EMQ.GREAP q group [LIMIT n] [MAX m] -> how many expired leases of the group were ended
-- uses: arity options queue group_name reaping clock digits see metrics leased live reap
arity(1)
local given = options(2, { LIMIT = true, MAX = true })
queue()
local group = group_name(ARGV[1])
local limit, max = reaping(given)
see('pending', 'zset')
see('dead', 'zset')
see_metric('failed')
see_lane(group)
local late = {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1] .. ':active', '-inf', digits(clock()), 'BYSCORE', 'LIMIT', 0, 10000)) do
    local job = leased(id)
    if job and job.group == group then
        late[#late + 1] = { id, live(id, job, 'active') and job or nil }
        if #late == limit then
            break
        end
    end
end
return reap(late, max)
