-- A lease is good while it runs, and after a reap until the next claim.
local function own(job, at)
    if at == 'active' then
        return true
    end
    local waits = at and (at == 'pending' or (job.group and at == 'g:' .. job.group .. ':pending'))
    return waits and job.reaped and job.reaped == job.attempts
end
