-- uses: lanes leave erase fail_up kin live
-- The first n ids of a place as { id, job } each; job is nil for a stale entry.
local function doomed(name, n)
    local plan = n > 0 and redis.call('ZRANGE', KEYS[1] .. ':' .. name, 0, n - 1) or {}
    for at, id in ipairs(plan) do
        local job = kin(id)
        if live(id, job, name) then
            see_lane(job.group)
            see_up(job, true)
            plan[at] = { id, job }
        else
            plan[at] = { id }
        end
    end
    return plan
end
-- Deletes what was planned for a place and tells the parents. group: that of the place when it is a lane. Answers how many
-- jobs there were.
local function purge(plan, name, group)
    local deleted = 0
    for _, step in ipairs(plan) do
        local id, job = step[1], step[2]
        leave(id, job or { group = group }, name)
        if job then
            deleted = deleted + 1
            erase(id)
            fail_up(id, job, 'removed')
        end
    end
    return deleted
end
