-- uses: queue refuse
-- Refuses a key of another kind. Answers whether the key exists.
local function see(key, kind)
    local found = call('TYPE', key).ok
    if found ~= kind and found ~= 'none' then
        refuse('WRONGTYPE Operation against a key holding the wrong kind of value')
    end
    return found == kind
end
