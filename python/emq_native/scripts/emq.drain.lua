-- EMQ.DRAIN q [SCHEDULED] [LIMIT n] -> how many waiting jobs without a group, and scheduled ones, were deleted
-- uses: arity options queue number see remove_later purge
arity(0)
local given = options(1, { SCHEDULED = false, LIMIT = true })
queue()
local limit = number('limit', given.LIMIT or '1000', 1, 10000)
see('pending', 'zset')
see('schedule', 'zset')
local waiting = doomed('pending', limit)
local later = doomed('schedule', given.SCHEDULED and limit - #waiting or 0)
local deleted = purge(waiting, 'pending') + purge(later, 'schedule')
flush_removed()
keep_metrics()
return deleted
