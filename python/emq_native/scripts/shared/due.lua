-- uses: refuse number
-- IN or AT, in any letter case.
local function timing(word)
    word = string.upper(word)
    if word ~= 'IN' and word ~= 'AT' then
        refuse('ERR syntax error')
    end
    return word
end
-- The instant that IN ms or AT ms names.
local function due(word, text, now)
    if word == 'IN' then
        return now + number('in', text, 0, M, now)
    end
    return number('at', text, 0, M)
end
