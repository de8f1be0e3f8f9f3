local function group_name(text)
    if #text > 64 or not string.find(text, '^[A-Za-z0-9._-]+$') then
        error('ERR group must be 1 to 64 of A-Z a-z 0-9 . _ -', 0)
    end
    return text
end
