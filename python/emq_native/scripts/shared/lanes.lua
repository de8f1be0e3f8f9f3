-- uses: queue see stored lane_key
-- The lanes that this call may touch, by group, as they will be when this call is over. By the contract a lane is
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
