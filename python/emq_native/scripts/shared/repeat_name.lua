local function repeat_name(text)
    if #text > 128 or not string.find(text, '^[A-Za-z0-9._-]+$') then
        error('ERR name must be 1 to 128 of A-Z a-z 0-9 . _ -', 0)
    end
    return text
end
