-- uses: lanes
-- Tunes a lane by what the ring really holds, and so repairs what foreign writes broke.
local function search(group)
    local ring, lane = KEYS[1] .. ':ring', lanes.see(group)
    if lanes.serviceable(lane) then
        lane.offered = redis.call('LPOS', ring, group) and true
    else
        lane.offered = false
        redis.call('LREM', ring, 0, group)
    end
    lanes.tune(group)
end
