-- uses: lane_key
-- The place of a job is named by its key.
local HOMES = { active = 'active', scheduled = 'schedule', dead = 'dead', awaiting_children = 'held' }
-- The place that the row names.
local function home(job)
    if job.state == 'pending' then
        return job.group and lane_key(job.group) or BASE .. 'pending'
    end
    return HOMES[job.state] and BASE .. HOMES[job.state]
end
-- The place that lists the job: the one that the row names, else the first of all. known: place -> score, as read before.
local function place(id, job, known)
    local function lists(key)
        local score = known and known[key]
        if score == nil then
            score = call('ZSCORE', key, id)
        end
        return score
    end
    local named = home(job)
    if named and lists(named) then
        return named
    end
    if job.group and lists(lane_key(job.group)) then
        return lane_key(job.group)
    end
    for _, name in ipairs({ 'pending', 'active', 'schedule', 'dead', 'held' }) do
        if lists(BASE .. name) then
            return BASE .. name
        end
    end
end
