-- uses: lanes
-- Takes a lane into the ring or out of it, after a change of its backlog, its count, its ceiling or its pause.
local function tune(group, lane)
    lane.tuned = true
    local ready = serviceable(lane)
    if ready == lane.offered then
        return
    end
    lane.offered = ready
    if not ready then
        call('LREM', BASE .. 'ring', -1, group)
        return
    end
    call('RPUSH', BASE .. 'ring', group)
    if call('LPUSH', BASE .. 'wake', '1') > 64 then
        call('LTRIM', BASE .. 'wake', 0, 63)
    end
end
