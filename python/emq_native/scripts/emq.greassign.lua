-- EMQ.GREASSIGN q id group -> 1 moved, 0 it is of that group, -1 no row or no group, -2 it does not wait
-- uses: arity queue group_name job_id fields place lanes remove_now add_now leave join
arity(2, 2)
queue()
local group = group_name(ARGV[2])
local id = job_id(ARGV[1])
see_lane(group)
local row = fields(id, 'state', 'group')
if not row or not row[2] then
    return -1
end
if row[2] == group then
    return 0
end
local job = { state = row[1], group = row[2] }
local lane = see_lane(job.group)
if place(id, job) ~= lane.name then
    return -2
end
leave(id, job, lane.name)
join(id, { group = group }, 'group', group)
return 1
