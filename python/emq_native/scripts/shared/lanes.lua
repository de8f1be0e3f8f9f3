-- uses: queue see stored digits place many
-- The lanes that this call may touch, by group, as they will be when keep_lanes has written them. By the contract a lane is
-- in the ring exactly when it is serviceable, so nothing has to be searched there.
local lanes, ring_seen = {}, false
local function serviceable(lane)
    return lane.backlog > 0 and not lane.parked and (lane.ceiling == 0 or lane.active < lane.ceiling)
end
-- Reads a lane and so tests every key that a change of it may write.
local function see_lane(group)
    if not group or lanes[group] then
        return lanes[group]
    end
    if not ring_seen then
        see(BASE .. 'ring', 'list')
        see(BASE .. 'wake', 'list')
        ring_seen = true
    end
    local lane = {
        key = lane_key(group),
        backlog = call('ZCARD', lane_key(group)),
        listed = call('SISMEMBER', BASE .. 'lanes', group) == 1,
        parked = call('SISMEMBER', BASE .. 'paused', group) == 1,
        ceiling = stored(call('HGET', BASE .. 'glimit', group)),
        active = stored(call('HGET', BASE .. 'gactive', group)),
    }
    lane.offered = serviceable(lane)
    lanes[group] = lane
    return lane
end
-- Takes a lane into the ring or out of it, after a change of its backlog, its count, its ceiling or its pause.
local function tune(group, lane)
    local ready = serviceable(lane)
    if ready == lane.offered then
        return
    end
    lane.offered = ready
    if not ready then
        call('LREM', BASE .. 'ring', 1, group)
        return
    end
    call('RPUSH', BASE .. 'ring', group)
    if call('LPUSH', BASE .. 'wake', '1') > 64 then
        call('LTRIM', BASE .. 'wake', 0, 63)
    end
end
local function count(group, lane, change)
    lane.active = math.max(0, lane.active + change)
    lane.counted = true
    tune(group, lane)
end
local function keep_lanes()
    if not next(lanes) then
        return
    end
    local counts, idle, filled, empty = {}, {}, {}, {}
    for group, lane in pairs(lanes) do
        if lane.counted and lane.active > 0 then
            counts[#counts + 1] = group
            counts[#counts + 1] = digits(lane.active)
        elseif lane.counted then
            idle[#idle + 1] = group
        end
        if lane.backlog > 0 and not lane.listed then
            filled[#filled + 1] = group
        elseif lane.backlog == 0 and lane.listed then
            empty[#empty + 1] = group
        end
    end
    many('HSET', BASE .. 'gactive', counts)
    many('HDEL', BASE .. 'gactive', idle)
    many('SADD', BASE .. 'lanes', filled)
    many('SREM', BASE .. 'lanes', empty)
end
