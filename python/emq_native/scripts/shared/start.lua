-- uses: leave count row stored digits
-- Lends a job until the deadline. Answers what a claim tells about it: id, payload, token, group.
local function start(id, job, from, deadline)
    leave(id, job, from)
    local attempts = stored(job.attempts) + 1
    call('HSET', row(id), 'state', 'active', 'attempts', digits(attempts))
    add(BASE .. 'active', deadline, id)
    local lane = lanes[job.group]
    if lane then
        count(job.group, lane, 1)
    end
    return { id, job.payload, attempts, job.group }
end
