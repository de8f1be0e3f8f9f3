-- Texts are compared byte by byte: Lua's own order of strings follows the server's locale.
local function sound_id(id)
    if #id ~= 14 or not string.find(id, '^JOB[0-9A-Za-z]+$') then
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
