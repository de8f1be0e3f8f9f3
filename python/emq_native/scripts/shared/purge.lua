-- uses: see lanes leave erase fail_up peek place
-- The first n ids of a place as { id, job } each; job is nil for a stale entry.
local function doomed(key, n)
    local plan = n > 0 and call('ZRANGE', key, 0, n - 1) or {}
    for at, id in ipairs(plan) do
        local job = peek(id, KIN)
        if job and home(job) ~= key and place(id, job) ~= key then
            job = nil
        end
        if job then
            see_lane(job.group)
            see_up(job, true)
        end
        plan[at] = { id, job }
    end
    return plan
end
-- Deletes what was planned for a place and tells the parents. group: that of the place when it is a lane. Answers how many
-- jobs there were.
local function purge(plan, key, group)
    local deleted = 0
    for _, step in ipairs(plan) do
        local id, job = step[1], step[2]
        leave(id, job or { group = group }, key)
        if job then
            deleted = deleted + 1
            erase(id)
            fail_up(id, job, 'removed', 0)
        end
    end
    return deleted
end
