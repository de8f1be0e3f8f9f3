-- EMQ.PROMOTE q [LIMIT n] -> how many due jobs wait now
-- uses: arity options queue number clock digits see moving live remove_later add_later join
arity(0)
local given = options(1, { LIMIT = true })
queue()
local limit = number('limit', given.LIMIT or '1000', 1, 10000)
see('pending', 'zset')
local due = redis.call('ZRANGE', KEYS[1] .. ':schedule', '-inf', digits(clock()), 'BYSCORE', 'LIMIT', 0, limit)
local jobs, promoted = {}, 0
for at, id in ipairs(due) do
    local job = moving(id)
    if live(id, job, 'schedule') then
        jobs[at] = job
    end
end
for _, job in pairs(jobs) do
    see_lane(job.group)
end
for at, id in ipairs(due) do
    remove('schedule', id)
    if jobs[at] then
        join(id, jobs[at])
        promoted = promoted + 1
    end
end
flush_removed()
flush_added()
return promoted
