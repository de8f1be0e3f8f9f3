-- uses: queue
-- Changes of places, made at once.
local function remove(key, id)
    call('ZREM', key, id)
end
local function add(key, score, id)
    call('ZADD', key, score, id)
end
