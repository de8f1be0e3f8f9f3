-- uses: lanes
-- Lets a job wait: in its lane when it has a group. Further fields of the row may be given.
local function join(id, job, ...)
    redis.call('HSET', KEYS[1] .. ':job:' .. id, 'state', 'pending', ...)
    local group = job.group
    if not group then
        add('pending', '0', id)
        return
    end
    add('g:' .. group .. ':pending', '0', id)
    lanes.wait(group, 1)
end
