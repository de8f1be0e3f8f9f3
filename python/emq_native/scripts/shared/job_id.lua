-- uses: sound_id
local function job_id(id)
    if sound_id(id) then
        return id
    end
    if string.sub(id, 1, 3) ~= 'JOB' then
        error('EMQKIND job id must be JOB-namespaced', 0)
    end
    error('EMQKIND job id must be 14 bytes: JOB and 11 base62 digits', 0)
end
