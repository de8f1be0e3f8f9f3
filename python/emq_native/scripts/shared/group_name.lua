-- uses: refuse
local function group_name(text)
    if #text > 64 or not string.find(text, '^[A-Za-z0-9._-]+$') then
        refuse('ERR group must be 1 to 64 of A-Z a-z 0-9 . _ -')
    end
    return text
end
