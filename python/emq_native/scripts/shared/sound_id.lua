-- Texts are compared byte by byte: Lua's own order of strings follows the server's locale.
local function sound_id(id)
    if #id ~= 14 or string.sub(id, 1, 3) ~= 'JOB' or string.find(id, '[^0-9A-Za-z]') then
        return false
    end
    for at = 4, 14 do
        local digit, last = string.byte(id, at), string.byte('JOBAzL8n0Y58m7', at)
        if digit ~= last then
            return digit < last
        end
    end
    return true
end
