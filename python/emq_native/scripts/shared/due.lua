-- uses: number clock digits
-- IN or AT, in any letter case.
local function timing(word)
    word = string.upper(word)
    if word ~= 'IN' and word ~= 'AT' then
        error('ERR syntax error', 0)
    end
    return word
end
-- The instant that IN ms or AT ms names.
local function due(word, text)
    if word == 'AT' then
        return digits(number('at', text, 0))
    end
    local now = clock()
    return digits(now + number('in', text, 0, nil, now))
end
