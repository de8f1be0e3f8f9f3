-- uses: refuse sound_id
local function job_id(id)
    if string.sub(id, 1, 3) ~= 'JOB' then
        refuse('EMQKIND job id must be JOB-namespaced')
    end
    if not sound_id(id) then
        refuse('EMQKIND job id must be 14 bytes: JOB and 11 base62 digits')
    end
    return id
end
