-- Writes the row of a new job. Further fields may be given.
local function admit(id, state, payload, ...)
    redis.call('HSET', KEYS[1] .. ':job:' .. id, 'state', state, 'attempts', '0', 'payload', payload, ...)
end
