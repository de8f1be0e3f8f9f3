-- Sorts texts by their bytes. Lua's own order of strings follows the server's locale, so numbers are compared: the first six
-- bytes of each text after what all have in common, and for equal ones what follows.
local function sort_bytes(texts)
    local shared = texts[1] or ''
    for _, text in ipairs(texts) do
        while string.sub(text, 1, #shared) ~= shared do
            shared = string.sub(shared, 1, -2)
        end
    end
    local function key(text, from)
        local number = 0
        for at = from, from + 5 do
            number = number * 257 + (string.byte(text, at) or -1) + 1
        end
        return number
    end
    local keys = {}
    for _, text in ipairs(texts) do
        keys[text] = key(text, #shared + 1)
    end
    table.sort(texts, function(a, b)
        local x, y, at = keys[a], keys[b], #shared + 7
        while x == y and (at <= #a or at <= #b) do
            x, y, at = key(a, at), key(b, at), at + 6
        end
        return x < y
    end)
end
