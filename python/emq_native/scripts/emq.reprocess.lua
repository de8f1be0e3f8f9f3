-- EMQ.REPROCESS q id -> 1 the dead job waits again, -1 there is no such job
-- uses: arity queue job_id see load place lanes direct leave join keep_lanes
arity(1, 1)
queue()
local id = job_id(ARGV[1])
local dead = BASE .. 'dead'
local known = { [dead] = call('ZSCORE', dead, id) }
see(BASE .. 'pending', 'zset')
local job = load(id, { 'state', 'attempts', 'group', 'last_error' })
if not job then
    return -1
end
if place(id, job, known) ~= dead then
    refuse('EMQSTATE not dead')
end
see_lane(job.group)
leave(id, job, dead)
if job.last_error then
    call('HDEL', row(id), 'last_error')
end
join(id, job, 'floor', job.attempts or '0')
keep_lanes()
return 1
