-- uses: parents
-- Tells the parent that a child completed.
local function done_up(id, job, result)
    if not job.parent then
        return
    end
    if job.parent_queue then
        entry(job.parent_queue, job.parent, id, result)
        return
    end
    local above = peek(job.parent, KIN)
    if above and not noted(job.parent, id) then
        call('HSET', row(job.parent) .. ':processed', id, result)
        countdown(job.parent, above)
    end
end
