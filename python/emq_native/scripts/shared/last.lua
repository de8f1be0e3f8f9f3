-- uses: stored
-- Whether the job has used up its runs; max is nil when nobody caps them.
local function last(job, max)
    return max and stored(job.attempts) - stored(job.floor) >= max
end
