-- uses: peek decimal number
-- A row whose `attempts` will be used.
local function load(id, fields)
    local job = peek(id, fields)
    if job and job.attempts and (decimal(job.attempts) or M) >= M then
        refuse('EMQSTATE job row is damaged')
    end
    return job
end
