-- EMQ.GENQUEUE q group id payload -> 1 admitted, 0 the id exists
-- uses: arity queue group_name job_id see lanes tune admit keep_lanes
arity(3, 3)
queue()
local group = group_name(ARGV[1])
local id = job_id(ARGV[2])
local lane = see_lane(group)
if see(row(id), 'hash') then
    return 0
end
admit(id, 'pending', ARGV[3], 'group', group)
call('ZADD', lane.key, 0, id)
lane.backlog = lane.backlog + 1
tune(group, lane)
keep_lanes()
return 1
