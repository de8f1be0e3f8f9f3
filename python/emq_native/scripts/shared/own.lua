-- uses: lane_key
-- A lease is good while it runs, and after a reap until the next claim.
local function own(job, at)
    if at == BASE .. 'active' then
        return true
    end
    local waits = at and (at == BASE .. 'pending' or (job.group and at == lane_key(job.group)))
    return waits and job.reaped and job.reaped == job.attempts
end
