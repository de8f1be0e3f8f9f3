-- EMQ.REMOVE q id [FORCE] -> 1 removed, -1 there is no such job
-- uses: arity options queue job_id peek place direct_flush leave erase fail_up keep_lanes
arity(1)
local given = options(2, { FORCE = false })
queue()
local id = job_id(ARGV[1])
local known = {}
for _, name in ipairs({ 'pending', 'active', 'schedule', 'dead', 'held' }) do
    known[BASE .. name] = call('ZSCORE', BASE .. name, id)
end
local job = peek(id, KIN)
if not job then
    for key, score in pairs(known) do
        if score then
            remove(key, id)
        end
    end
    return -1
end
local at = place(id, job, known)
if not given.FORCE then
    if at == BASE .. 'active' then
        refuse('EMQLOCK job is active')
    end
    if call('EXISTS', row(id) .. ':lock') == 1 then
        refuse('EMQLOCK job is locked')
    end
end
see_lane(job.group)
see_up(job, true)
leave(id, job, at)
erase(id)
fail_up(id, job, 'removed', 0)
keep_lanes()
keep_metrics()
return 1
