-- uses: tune
-- Changes the number of active jobs of a group.
local function count(group, lane, change)
    lane.active = math.max(0, lane.active + change)
    lane.counted = true
    tune(group, lane)
end
