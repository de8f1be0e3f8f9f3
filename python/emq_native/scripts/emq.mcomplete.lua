-- EMQ.MCOMPLETE q id token [id token ...] -> for each 1 completed, 0 there is no such job, -1 token or state refused
-- uses: arity members queue job_id see metrics load settled own place batched finish keep_lanes
arity(2, nil, 2)
local count = members(#ARGV / 2)
queue()
for at = 1, count do
    job_id(ARGV[2 * at - 1])
end
see(BASE .. 'active', 'zset')
see(BASE .. 'pending', 'zset')
see_metric('completed')
local jobs, replies = {}, {}
for at = 1, count do
    local id = ARGV[2 * at - 1]
    if not jobs[id] then
        local job = load(id, SETTLED)
        if job then
            jobs[id] = { job, place(id, job) }
            see_lane(job.group)
            see_up(job, false)
        end
    end
end
for at = 1, count do
    local id = ARGV[2 * at - 1]
    local job, from = unpack(jobs[id] or {})
    if not job then
        replies[at] = 0
    elseif job.attempts ~= ARGV[2 * at] or not own(job, from) then
        replies[at] = -1
    else
        replies[at] = 1
        finish(id, job, from, id)
        jobs[id] = nil
    end
end
flush()
keep_lanes()
keep_metrics()
return replies
