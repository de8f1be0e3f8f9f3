-- EMQ.PROMOTE q [LIMIT n] -> how many due jobs wait now
-- uses: arity options queue number clock digits see load place batched join keep_lanes
arity(0)
local given = options(1, { LIMIT = true })
queue()
local limit = number('limit', given.LIMIT or '1000', 1, 10000)
local schedule = BASE .. 'schedule'
see(BASE .. 'pending', 'zset')
local due = call('ZRANGE', schedule, '-inf', digits(clock()), 'BYSCORE', 'LIMIT', 0, limit)
local jobs, promoted = {}, 0
for at, id in ipairs(due) do
    local job = load(id, { 'state', 'attempts', 'group' })
    if job and (home(job) == schedule or place(id, job) == schedule) then
        jobs[at] = job
        see_lane(job.group)
    end
end
for at, id in ipairs(due) do
    remove(schedule, id)
    if jobs[at] then
        join(id, jobs[at])
        promoted = promoted + 1
    end
end
flush()
keep_lanes()
return promoted
