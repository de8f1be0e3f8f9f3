-- EMQ.COUNTS q -> a map of the number of jobs in each state, and of the jobs completed and failed so far
-- uses: arity queue stored
arity(0, 0)
queue()
local function size(name)
    return redis.call('ZCARD', KEYS[1] .. ':' .. name)
end
local function metric(name)
    return stored(redis.call('HGET', KEYS[1] .. ':metrics:' .. name, 'count'))
end
local waiting = size('pending')
for _, group in ipairs(redis.call('SMEMBERS', KEYS[1] .. ':lanes')) do
    waiting = waiting + size('g:' .. group .. ':pending')
end
return {
    'pending', waiting, 'active', size('active'), 'scheduled', size('schedule'), 'dead', size('dead'),
    'awaiting_children', size('held'), 'completed', metric('completed'), 'failed', metric('failed'),
}
