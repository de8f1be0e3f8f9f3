-- Refuses a key of another kind. Answers whether the key exists.
local function see(name, kind)
    local found = redis.call('TYPE', KEYS[1] .. ':' .. name).ok
    if found ~= kind and found ~= 'none' then
        error('WRONGTYPE Operation against a key holding the wrong kind of value', 0)
    end
    return found == kind
end
