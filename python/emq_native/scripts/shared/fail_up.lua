-- uses: parents
local fail_up
-- Moves a job that left its place to the dead, and tells its parent.
local function die(id, job, text, level)
    call('HSET', row(id), 'state', 'dead', 'last_error', text)
    add(BASE .. 'dead', 0, id)
    bump('failed')
    fail_up(id, job, text, level)
end
-- Tells the parent that a child failed; unless the failure is to be ignored, a parent that waits dies of it.
function fail_up(id, job, text, level)
    if not job.parent then
        return
    end
    local policy = job.parent_policy == 'id' and 'id' or 'fp'
    if job.parent_queue or level == UP then
        entry('', 'fail', job.parent_queue or string.sub(KEYS[1], 6, -2), job.parent, id, policy, text)
        return
    end
    local above = peek(job.parent, KIN)
    if not above or noted(job.parent, id) then
        return
    end
    if policy == 'id' then
        call('HSET', row(job.parent) .. ':unsuccessful', id, text)
        countdown(job.parent, above)
        return
    end
    call('HSET', row(job.parent) .. ':failed', id, text)
    if place(job.parent, above) == BASE .. 'held' then
        remove(BASE .. 'held', job.parent)
        die(job.parent, above, 'child failed: ' .. id, level + 1)
        flush()
    end
end
