-- uses: remove_later add_later lanes leave join last die
-- Ends the leases of the given jobs: the dead letter when their runs are used up, else waiting again with the token still
-- good. late: { id, job } each; job is nil for a stale entry, which is only taken off. Answers how many were none.
local function reap(late, max)
    for _, lease in ipairs(late) do
        local job = lease[2]
        if job then
            see_lane(job.group)
            if last(job, max) then
                see_up(job, true)
            end
        end
    end
    local reaped = 0
    for _, lease in ipairs(late) do
        local id, job = lease[1], lease[2]
        if not job then
            remove('active', id)
        else
            reaped = reaped + 1
            leave(id, job, 'active')
            if last(job, max) then
                die(id, job, 'lease expired')
            elseif job.attempts then
                join(id, job, 'reaped', job.attempts)
            else
                join(id, job)
            end
        end
    end
    flush_removed()
    flush_added()
    if lanes then
        lanes.keep()
    end
    keep_metrics()
    return reaped
end
