-- uses: load place
local SETTLED = { 'state', 'attempts', 'group', 'reaped', 'floor', 'parent', 'parent_queue', 'parent_policy' }
-- A lease is good while it runs, and after a reap until the next claim.
local function own(job, at)
    if at == BASE .. 'active' then
        return true
    end
    local waits = at and (at == BASE .. 'pending' or (job.group and at == lane_key(job.group)))
    return waits and job.reaped and job.reaped == job.attempts
end
-- The job and its place for the holder of its token; nil when there is no such job.
local function owner(id, token, word)
    local known = { [BASE .. 'active'] = call('ZSCORE', BASE .. 'active', id) }
    local job = load(id, SETTLED)
    if not job then
        return
    end
    if job.attempts ~= token then
        refuse('EMQSTALE ' .. word .. ' token mismatch')
    end
    local at = place(id, job, known)
    if not own(job, at) then
        refuse('EMQSTATE job is not active')
    end
    return job, at
end
