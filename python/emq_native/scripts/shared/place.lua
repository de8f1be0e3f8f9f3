-- A place is named by its key without the queue: pending, active, schedule, dead, held, or g:<group>:pending.
-- The one that the row names.
local function home(job)
    local state = job.state
    if state == 'pending' then
        return job.group and 'g:' .. job.group .. ':pending' or 'pending'
    elseif state == 'active' or state == 'dead' then
        return state
    elseif state == 'scheduled' then
        return 'schedule'
    elseif state == 'awaiting_children' then
        return 'held'
    end
end
-- The one that lists the job: the one that the row names, else the first of all. known: place -> score, as read before.
local function place(id, job, known)
    local function lists(name)
        local score = known and known[name]
        if score == nil then
            score = redis.call('ZSCORE', KEYS[1] .. ':' .. name, id)
        end
        return score
    end
    local named = home(job)
    if named and lists(named) then
        return named
    end
    local lane = job.group and 'g:' .. job.group .. ':pending'
    if lane and lists(lane) then
        return lane
    end
    for _, name in ipairs({ 'pending', 'active', 'schedule', 'dead', 'held' }) do
        if lists(name) then
            return name
        end
    end
end
