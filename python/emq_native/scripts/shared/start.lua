-- uses: leave stored digits
-- Lends a job until the deadline. Answers what a claim tells about it: id, payload, token, group.
local function start(id, job, from, deadline)
    leave(id, job, from)
    local attempts = stored(job.attempts) + 1
    redis.call('HSET', KEYS[1] .. ':job:' .. id, 'state', 'active', 'attempts', digits(attempts))
    add('active', deadline, id)
    if job.group then
        lanes.run(job.group, 1)
    end
    return { id, job.payload, attempts, job.group }
end
