-- uses: row
-- Writes the row of a new job. Further fields may be given.
local function admit(id, state, payload, ...)
    call('HSET', row(id), 'state', state, 'attempts', '0', 'payload', payload, ...)
end
