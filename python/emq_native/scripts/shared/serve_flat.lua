-- uses: see heads start
-- Takes the first jobs of `pending`, at most want; nothing while the queue is paused.
local function serve_flat(deadline, want)
    local paused = redis.call('HEXISTS', KEYS[1] .. ':meta', 'paused') == 1
    see('active', 'zset')
    if paused then
        see('pending', 'zset')
        return {}
    end
    local jobs, stale = heads('pending', want)
    for _, head in ipairs(jobs) do
        see_lane(head[2].group)
    end
    for _, id in ipairs(stale) do
        remove('pending', id)
    end
    local taken = {}
    for at, head in ipairs(jobs) do
        taken[at] = start(head[1], head[2], 'pending', deadline)
    end
    if lanes then
        lanes.keep()
    end
    return taken
end
