-- uses: load settled place own
-- The job and its place for the holder of its token; nil when there is no such job.
local function owner(id, token, word)
    local known = { [BASE .. 'active'] = call('ZSCORE', BASE .. 'active', id) }
    local job = load(id, SETTLED)
    if not job then
        return
    end
    if job.attempts ~= token then
        refuse('EMQSTALE ' .. word .. ' token mismatch')
    end
    local at = place(id, job, known)
    if not own(job, at) then
        refuse('EMQSTATE job is not active')
    end
    return job, at
end
