-- uses: lanes tune row
-- Lets a job wait: in its lane when it has a group. Further fields of the row may be given.
local function join(id, job, ...)
    call('HSET', row(id), 'state', 'pending', ...)
    local lane = lanes[job.group]
    if not lane then
        add(BASE .. 'pending', 0, id)
        return
    end
    add(lane.key, 0, id)
    lane.backlog = lane.backlog + 1
    tune(job.group, lane)
end
