-- uses: lanes count
-- Takes a job off its place, if it has one.
local function leave(id, job, from)
    if not from then
        return
    end
    remove(from, id)
    local lane = lanes[job.group]
    if lane and from == BASE .. 'active' then
        count(job.group, lane, -1)
    elseif lane and from == lane.key then
        lane.backlog = lane.backlog - 1
        tune(job.group, lane)
    end
end
