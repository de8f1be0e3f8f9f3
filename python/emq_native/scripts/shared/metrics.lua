-- uses: queue stored digits
-- The counters that this call may raise. Reading one tests its kind.
local metrics = {}
local function see_metric(name)
    if not metrics[name] then
        local key = BASE .. 'metrics:' .. name
        metrics[name] = { key = key, count = stored(call('HGET', key, 'count')), added = 0 }
    end
end
local function bump(name)
    metrics[name].added = metrics[name].added + 1
end
local function keep_metrics()
    for _, metric in pairs(metrics) do
        if metric.added > 0 then
            call('HSET', metric.key, 'count', digits(metric.count + metric.added))
        end
    end
end
