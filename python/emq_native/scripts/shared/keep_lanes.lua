-- uses: lanes digits many
-- Writes what the lanes became.
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
        if lane.tuned and lane.backlog > 0 and not lane.listed then
            filled[#filled + 1] = group
        elseif lane.tuned and lane.backlog == 0 and lane.listed then
            empty[#empty + 1] = group
        end
    end
    many('HSET', BASE .. 'gactive', counts)
    many('HDEL', BASE .. 'gactive', idle)
    many('SADD', BASE .. 'lanes', filled)
    many('SREM', BASE .. 'lanes', empty)
end
