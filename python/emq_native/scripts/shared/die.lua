-- uses: fail_up metrics
-- Moves a job that left its place to the dead, and tells its parent.
local function die(id, job, text)
    redis.call('HSET', KEYS[1] .. ':job:' .. id, 'state', 'dead', 'last_error', text)
    add('dead', '0', id)
    bump('failed')
    fail_up(id, job, text)
end
