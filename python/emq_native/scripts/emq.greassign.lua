-- EMQ.GREASSIGN q id group -> 1 moved, 0 it is of that group, -1 no row or no group, -2 it does not wait
-- uses: arity queue group_name job_id peek place lanes direct leave join keep_lanes
arity(2, 2)
queue()
local group = group_name(ARGV[2])
local id = job_id(ARGV[1])
see_lane(group)
local job = peek(id, { 'state', 'group' })
if not job or not job.group then
    return -1
end
if job.group == group then
    return 0
end
local lane = see_lane(job.group)
if place(id, job) ~= lane.key then
    return -2
end
leave(id, job, lane.key)
join(id, { group = group }, 'group', group)
keep_lanes()
return 1
