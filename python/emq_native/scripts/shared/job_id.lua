-- uses: refuse
-- Texts are compared byte by byte: Lua's own order of strings follows the server's locale.
local function job_id(id)
    if string.sub(id, 1, 3) ~= 'JOB' then
        refuse('EMQKIND job id must be JOB-namespaced')
    end
    local sound = #id == 14 and not string.find(id, '[^0-9A-Za-z]')
    local at, digit, last = 3, nil, nil
    while sound and digit == last and at < 14 do
        at = at + 1
        digit, last = string.byte(id, at), string.byte('JOBAzL8n0Y58m7', at)
        sound = digit <= last
    end
    if not sound then
        refuse('EMQKIND job id must be 14 bytes: JOB and 11 base62 digits')
    end
    return id
end
