-- uses: see heads start keep_lanes
-- Takes the first jobs of `pending` that have no stale entry, at most want.
local function serve_flat(deadline, want)
    local paused = call('HEXISTS', BASE .. 'meta', 'paused') == 1
    see(BASE .. 'active', 'zset')
    if paused then
        see(BASE .. 'pending', 'zset')
        return {}
    end
    local live, bad = heads(BASE .. 'pending', want)
    for _, head in ipairs(live) do
        see_lane(head[2].group)
    end
    for _, id in ipairs(bad) do
        remove(BASE .. 'pending', id)
    end
    local taken = {}
    for at, head in ipairs(live) do
        taken[at] = start(head[1], head[2], BASE .. 'pending', deadline)
    end
    flush()
    keep_lanes()
    return taken
end
