-- uses: see heads start
-- Walks the ring to its first lane that has a job to give. Answers its jobs, its group, and every lane on the way.
local function next_lane(want)
    local passed, met, read = {}, {}, 0
    while read < 1000 do
        local groups = redis.call('LRANGE', KEYS[1] .. ':ring', read, read == 0 and 0 or 999)
        if #groups == 0 then
            break
        end
        for _, group in ipairs(groups) do
            if not met[group] then
                met[group] = true
                local lane, jobs, stale = see_lane(group), {}, {}
                if lanes.serviceable(lane) then
                    local most = want(group)
                    if lane.ceiling > 0 then
                        most = math.min(most, lane.ceiling - lane.active)
                    end
                    jobs, stale = heads(lane.name, most)
                end
                passed[#passed + 1] = { group, lane, stale }
                if #jobs > 0 then
                    return jobs, group, passed
                end
            end
        end
        read = read + #groups
    end
    return {}, nil, passed
end
-- Serves the next lane of the ring, at most want(group) jobs and never above the ceiling of the group. It goes to the tail
-- unless it has nothing more to give now; lanes that gave nothing lose their stale entries, and then perhaps their turn.
local function serve_lane(deadline, want)
    local paused = redis.call('HEXISTS', KEYS[1] .. ':meta', 'paused') == 1
    see('active', 'zset')
    if paused then
        see('ring', 'list')
        return {}
    end
    local jobs, served, passed = next_lane(want)
    for _, step in ipairs(passed) do
        local group, lane, stale = unpack(step)
        for _, id in ipairs(stale) do
            remove(lane.name, id)
        end
        lane.offered = true
        lanes.wait(group, -#stale)
    end
    local taken = {}
    for at, head in ipairs(jobs) do
        taken[at] = start(head[1], head[2], 'g:' .. served .. ':pending', deadline)
    end
    if served and see_lane(served).offered and lanes.ring > 1 then
        redis.call('LREM', KEYS[1] .. ':ring', 1, served)
        redis.call('RPUSH', KEYS[1] .. ':ring', served)
    end
    if served then
        lanes.keep()
    end
    return taken
end
