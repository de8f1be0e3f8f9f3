-- uses: see stored digits many
-- What concerns lanes is set up when the first job with a group is met.
local lanes
local function open_lanes()
    local known = {}
    lanes = {}
    -- A lane as this call leaves it, and the length of the ring. Reading it tests every key that a change of it may write. By the contract it is in the
    -- ring exactly when it is serviceable, so nothing has to be searched there.
    function lanes.see(group)
        local lane = known[group]
        if lane then
            return lane
        end
        if not next(known) then
            lanes.ring = redis.call('LLEN', KEYS[1] .. ':ring')
            see('wake', 'list')
        end
        local base, name = KEYS[1] .. ':', 'g:' .. group .. ':pending'
        lane = {
            name = name,
            backlog = redis.call('ZCARD', base .. name),
            listed = redis.call('SISMEMBER', base .. 'lanes', group) == 1,
            parked = redis.call('SISMEMBER', base .. 'paused', group) == 1,
            ceiling = stored(redis.call('HGET', base .. 'glimit', group)),
            active = stored(redis.call('HGET', base .. 'gactive', group)),
        }
        lane.offered = lanes.serviceable(lane)
        known[group] = lane
        return lane
    end
    function lanes.serviceable(lane)
        return lane.backlog > 0 and not lane.parked and (lane.ceiling == 0 or lane.active < lane.ceiling)
    end
    -- Lists a lane, and takes it into the ring or out of it, after a change of its backlog, count, ceiling or pause.
    function lanes.tune(group)
        local base, lane = KEYS[1] .. ':', known[group]
        local filled = lane.backlog > 0
        if filled ~= lane.listed then
            redis.call(filled and 'SADD' or 'SREM', base .. 'lanes', group)
            lane.listed = filled
        end
        local ready = lanes.serviceable(lane)
        if ready == lane.offered then
            return
        end
        lane.offered = ready
        if not ready and lanes.leaving then
            lanes.leaving[group] = true
            return
        elseif not ready then
            lanes.ring = lanes.ring - redis.call('LREM', base .. 'ring', 1, group)
            return
        elseif lanes.leaving and lanes.leaving[group] then
            lanes.leave()
        end
        lanes.ring = redis.call('RPUSH', base .. 'ring', group)
        if redis.call('LPUSH', base .. 'wake', '1') > 64 then
            redis.call('LTRIM', base .. 'wake', 0, 63)
        end
    end
    -- So many more jobs of the group wait.
    function lanes.wait(group, more)
        known[group].backlog = known[group].backlog + more
        lanes.tune(group)
    end
    -- So many more jobs of the group are active; keep writes the count.
    function lanes.run(group, more)
        known[group].active = math.max(0, known[group].active + more)
        known[group].counted = true
        lanes.tune(group)
    end
    function lanes.keep()
        local counts, idle = {}, {}
        for group, lane in pairs(known) do
            if lane.counted and lane.active > 0 then
                counts[#counts + 1] = group
                counts[#counts + 1] = digits(lane.active)
            elseif lane.counted then
                idle[#idle + 1] = group
            end
        end
        many('HSET', 'gactive', counts)
        many('HDEL', 'gactive', idle)
    end
end
local function see_lane(group)
    if not group then
        return nil
    end
    if not lanes then
        open_lanes()
    end
    return lanes.see(group)
end
