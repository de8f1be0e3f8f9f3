-- EMQ.REMOVE q id [FORCE] -> 1 removed, -1 there is no such job
-- uses: arity options queue job_id kin place remove_now leave erase fail_up
arity(1)
local given = options(2, { FORCE = false })
queue()
local id = job_id(ARGV[1])
local known = {}
for _, name in ipairs({ 'pending', 'active', 'schedule', 'dead', 'held' }) do
    known[name] = redis.call('ZSCORE', KEYS[1] .. ':' .. name, id)
end
local job = kin(id)
if not job then
    for name, score in pairs(known) do
        if score then
            remove(name, id)
        end
    end
    return -1
end
local at = place(id, job, known)
if not given.FORCE then
    if at == 'active' then
        error('EMQLOCK job is active', 0)
    end
    if redis.call('EXISTS', KEYS[1] .. ':job:' .. id .. ':lock') == 1 then
        error('EMQLOCK job is locked', 0)
    end
end
see_lane(job.group)
see_up(job, true)
leave(id, job, at)
erase(id)
fail_up(id, job, 'removed')
if lanes then
    lanes.keep()
end
keep_metrics()
return 1
