-- EMQ.GDRAIN q group [LIMIT n] -> how many waiting jobs of the group were deleted
-- uses: arity options queue group_name number remove_later purge
arity(1)
local given = options(2, { LIMIT = true })
queue()
local group = group_name(ARGV[1])
local limit = number('limit', given.LIMIT or '1000', 1, 10000)
local lane = see_lane(group)
local deleted = purge(doomed(lane.name, limit), lane.name, group)
flush_removed()
keep_metrics()
return deleted
