-- EMQ.COUNTS q -> a map of the number of jobs in each state, and of the jobs completed and failed so far
-- uses: arity queue lane_key stored
arity(0, 0)
queue()
local function size(name)
    return call('ZCARD', BASE .. name)
end
local waiting = size('pending')
local active, scheduled, dead, held = size('active'), size('schedule'), size('dead'), size('held')
for _, group in ipairs(call('SMEMBERS', BASE .. 'lanes')) do
    waiting = waiting + call('ZCARD', lane_key(group))
end
local function metric(name)
    return stored(call('HGET', BASE .. 'metrics:' .. name, 'count'))
end
return {
    'pending', waiting, 'active', active, 'scheduled', scheduled, 'dead', dead, 'awaiting_children', held,
    'completed', metric('completed'), 'failed', metric('failed'),
}
