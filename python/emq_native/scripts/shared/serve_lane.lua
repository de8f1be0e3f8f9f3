-- uses: see heads start keep_lanes
-- Walks the ring to its first lane that has a job to give. Answers its jobs, its group, and every lane on the way.
local function next_lane(want)
    local passed, met, read = {}, {}, 0
    while read < 1000 do
        local groups = call('LRANGE', BASE .. 'ring', read, read == 0 and 0 or 999)
        if #groups == 0 then
            break
        end
        for _, group in ipairs(groups) do
            if not met[group] then
                met[group] = true
                local lane, live, bad = see_lane(group), {}, {}
                if serviceable(lane) then
                    local most = want(group)
                    if lane.ceiling > 0 then
                        most = math.min(most, lane.ceiling - lane.active)
                    end
                    live, bad = heads(lane.key, most)
                end
                passed[#passed + 1] = { group, lane, bad }
                if #live > 0 then
                    return live, group, passed
                end
            end
        end
        read = read + #groups
    end
    return {}, nil, passed
end
-- Serves the next lane of the ring, at most want(group) jobs and never above the ceiling of the group. It goes to the tail;
-- lanes that gave nothing lose their stale entries, and their turn unless they may still have a job.
local function serve_lane(deadline, want)
    local paused = call('HEXISTS', BASE .. 'meta', 'paused') == 1
    see(BASE .. 'active', 'zset')
    see(BASE .. 'ring', 'list')
    if paused then
        return {}
    end
    local live, served, passed = next_lane(want)
    if served then
        call('LREM', BASE .. 'ring', 1, served)
        call('RPUSH', BASE .. 'ring', served)
    end
    for _, step in ipairs(passed) do
        local group, lane, bad = unpack(step)
        for _, id in ipairs(bad) do
            remove(lane.key, id)
        end
        lane.backlog = lane.backlog - #bad
        lane.offered = true
        tune(group, lane)
    end
    local taken = {}
    for at, head in ipairs(live) do
        taken[at] = start(head[1], head[2], lanes[served].key, deadline)
    end
    flush()
    keep_lanes()
    return taken
end
