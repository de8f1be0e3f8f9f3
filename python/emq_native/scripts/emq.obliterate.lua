-- EMQ.OBLITERATE q [FORCE] [LIMIT n] -> 1 there is more, 0 nothing of the queue is left
-- uses: arity options queue number sort_bytes see metrics remove_later place purge leave_ring
arity(0)
local given = options(1, { FORCE = false, LIMIT = true })
queue()
local limit = number('limit', given.LIMIT or '1000', 1, 10000)
local base = KEYS[1] .. ':'
local paused = redis.call('HEXISTS', base .. 'meta', 'paused') == 1
see('pending', 'zset')
local running = see('active', 'zset')
see('schedule', 'zset')
see('dead', 'zset')
see('held', 'zset')
see('repeat', 'zset')
see('lanes', 'set')
local undelivered = see('flow:outbox', 'list')
see_metric('failed')
if not paused then
    error('EMQSTATE not paused', 0)
end
if running and not given.FORCE then
    error('EMQSTATE active jobs present', 0)
end

local plans, left = {}, limit
local function plan(name, group)
    local ids = doomed(name, left)
    left = left - #ids
    plans[#plans + 1] = { ids, name, group }
end
plan('active')
plan('pending')
local groups = left > 0 and redis.call('SMEMBERS', base .. 'lanes') or {}
sort_bytes(groups)
for _, group in ipairs(groups) do
    if left == 0 then
        break
    end
    plan(see_lane(group).name, group)
end
plan('schedule')
plan('dead')
plan('held')
local names = left > 0 and redis.call('ZRANGE', base .. 'repeat', 0, left - 1) or {}
if left == limit and #names == 0 and undelivered and not given.FORCE then
    error('EMQSTATE flow outbox is not empty', 0)
end

if lanes then
    leave_later()
end
for _, step in ipairs(plans) do
    local ids, name, group = unpack(step)
    if not parents then
        purge(ids, name, group)
    else
        -- An end that a parent was told of may have moved it.
        for _, planned in ipairs(ids) do
            local id, job = planned[1], planned[2] and kin(planned[1])
            purge({ { id, job } }, job and place(id, job) or name, group)
        end
    end
    -- A lane without a backlog too.
    if group then
        lanes.tune(group)
    end
end
flush_removed()
for _, name in ipairs(names) do
    redis.call('ZREM', base .. 'repeat', name)
    redis.call('DEL', base .. 'repeat:' .. name)
end
if lanes then
    lanes.leave()
    lanes.keep()
end
keep_metrics()

local function keys(...)
    local list = {}
    for at, name in ipairs({ ... }) do
        list[at] = base .. name
    end
    return unpack(list)
end
local open = redis.call('EXISTS', keys('pending', 'active', 'schedule', 'dead', 'held', 'lanes', 'repeat'))
if open > 0 or (not given.FORCE and redis.call('EXISTS', base .. 'flow:outbox') == 1) then
    return 1
end
redis.call('DEL', keys('metrics:completed', 'metrics:failed', 'metrics:completed:data', 'metrics:failed:data', 'gactive',
    'glimit', 'gweight', 'ring', 'lanes', 'wake', 'paused', 'limiter', 'repeat', 'flow:outbox', 'flow:poison', 'meta'))
return 0
