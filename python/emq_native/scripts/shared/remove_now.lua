-- Takes a job off a place.
local function remove(name, id)
    redis.call('ZREM', KEYS[1] .. ':' .. name, id)
end
