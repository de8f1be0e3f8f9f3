-- EMQ.OBLITERATE q [FORCE] [LIMIT n] -> 1 there is more, 0 nothing of the queue is left
-- uses: arity options queue number before see direct_flush purge keep_lanes
arity(0)
local given = options(1, { FORCE = false, LIMIT = true })
queue()
local limit = number('limit', given.LIMIT or '1000', 1, 10000)
local paused = call('HEXISTS', BASE .. 'meta', 'paused') == 1
for _, name in ipairs({ 'pending', 'active', 'schedule', 'dead', 'held', 'repeat' }) do
    see(BASE .. name, 'zset')
end
see(BASE .. 'lanes', 'set')
local undelivered = see(BASE .. 'flow:outbox', 'list')
see_metric('failed')
if not paused then
    refuse('EMQSTATE not paused')
end
if call('EXISTS', BASE .. 'active') == 1 and not given.FORCE then
    refuse('EMQSTATE active jobs present')
end

local plans, left = {}, limit
local function plan(key, group)
    local ids = doomed(key, left)
    left = left - #ids
    plans[#plans + 1] = { ids, key, group }
end
plan(BASE .. 'active')
plan(BASE .. 'pending')
if left > 0 then
    local groups = call('SMEMBERS', BASE .. 'lanes')
    table.sort(groups, before)
    for _, group in ipairs(groups) do
        if left == 0 then
            break
        end
        plan(see_lane(group).key, group)
    end
end
plan(BASE .. 'schedule')
plan(BASE .. 'dead')
plan(BASE .. 'held')
local names = left > 0 and call('ZRANGE', BASE .. 'repeat', 0, left - 1) or {}
if left == limit and #names == 0 and undelivered and not given.FORCE then
    refuse('EMQSTATE flow outbox is not empty')
end

for _, step in ipairs(plans) do
    local ids, key, group = unpack(step)
    for _, entry in ipairs(ids) do
        local job = entry[2] and peek(entry[1], KIN)
        local at = job and place(entry[1], job) or key
        purge({ { entry[1], job } }, at, group)
    end
end
for _, name in ipairs(names) do
    call('ZREM', BASE .. 'repeat', name)
    call('DEL', BASE .. 'repeat:' .. name)
end
keep_lanes()
keep_metrics()

local function keys(...)
    local list = {}
    for at, name in ipairs({ ... }) do
        list[at] = BASE .. name
    end
    return unpack(list)
end
local open = call('EXISTS', keys('pending', 'active', 'schedule', 'dead', 'held', 'lanes', 'repeat'))
if open > 0 or (not given.FORCE and call('EXISTS', BASE .. 'flow:outbox') == 1) then
    return 1
end
call('DEL', keys('metrics:completed', 'metrics:failed', 'metrics:completed:data', 'metrics:failed:data', 'gactive', 'glimit',
    'gweight', 'ring', 'lanes', 'wake', 'paused', 'limiter', 'repeat', 'flow:outbox', 'flow:poison', 'meta'))
return 0
