-- uses: leased place own
-- The job and its place for the holder of its token; nil when there is no such job.
local function owner(id, token, word)
    local score = redis.call('ZSCORE', KEYS[1] .. ':active', id)
    local job = leased(id)
    if not job then
        return nil
    end
    if job.attempts ~= token then
        error('EMQSTALE ' .. word .. ' token mismatch', 0)
    end
    if score and job.state == 'active' then
        return job, 'active'
    end
    local at = place(id, job, { active = score })
    if not own(job, at) then
        error('EMQSTATE job is not active', 0)
    end
    return job, at
end
