-- uses: decimal
-- A row whose `attempts` will be used.
local function undamaged(job)
    local attempts = job.attempts
    if attempts and (decimal(attempts) or 9007199254740991) >= 9007199254740991 then
        error('EMQSTATE job row is damaged', 0)
    end
    return job
end
