-- uses: queue
-- A lane is named by its group, as a place by its key.
local function lane_key(group)
    return BASE .. 'g:' .. group .. ':pending'
end
