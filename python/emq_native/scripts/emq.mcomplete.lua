-- EMQ.MCOMPLETE q id token [id token ...] -> for each 1 completed, 0 there is no such job, -1 token or state refused
-- uses: arity members queue job_id see metrics leased place own remove_later finish
arity(2, nil, 2)
local count = members(#ARGV / 2)
queue()
for at = 1, count do
    job_id(ARGV[2 * at - 1])
end
see('active', 'zset')
see('pending', 'zset')
see_metric('completed')
local jobs, places, replies = {}, {}, {}
for at = 1, count do
    local id = ARGV[2 * at - 1]
    local job = not jobs[id] and leased(id)
    if job then
        jobs[id], places[id] = job, place(id, job)
    end
end
for at = 1, count do
    local job = jobs[ARGV[2 * at - 1]]
    if job then
        see_lane(job.group)
        see_up(job, false)
    end
end
for at = 1, count do
    local id = ARGV[2 * at - 1]
    local job = jobs[id]
    if not job then
        replies[at] = 0
    elseif job.attempts ~= ARGV[2 * at] or not own(job, places[id]) then
        replies[at] = -1
    else
        replies[at] = 1
        finish(id, job, places[id], id)
        jobs[id] = nil
    end
end
flush_removed()
if lanes then
    lanes.keep()
end
keep_metrics()
return replies
