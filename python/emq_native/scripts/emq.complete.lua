-- EMQ.COMPLETE q id token [RESULT bytes] -> 1, 0 there is no such job
-- uses: arity options queue job_id see metrics owner remove_now finish
arity(2)
local given = options(3, { RESULT = true })
queue()
local id = job_id(ARGV[1])
see('pending', 'zset')
see_metric('completed')
local job, at = owner(id, ARGV[2], 'complete')
if not job then
    return 0
end
see_lane(job.group)
see_up(job, false)
finish(id, job, at, given.RESULT or id)
if lanes then
    lanes.keep()
end
keep_metrics()
return 1
