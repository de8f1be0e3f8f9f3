-- Lists a job in a place.
local function add(name, score, id)
    redis.call('ZADD', KEYS[1] .. ':' .. name, score, id)
end
