-- uses: lanes
-- Takes a job off its place, if it has one.
local function leave(id, job, from)
    if not from then
        return
    end
    remove(from, id)
    local group = job.group
    if group and from == 'active' then
        lanes.run(group, -1)
    elseif group and from == 'g:' .. group .. ':pending' then
        lanes.wait(group, -1)
    end
end
