-- uses: stored digits
-- The counters that this call may raise. Reading one tests its kind.
local metrics = {}
local function see_metric(name)
    metrics[name] = metrics[name] or { count = redis.call('HGET', KEYS[1] .. ':metrics:' .. name, 'count'), added = 0 }
end
local function bump(name)
    metrics[name].added = metrics[name].added + 1
end
local function keep_metrics()
    for name, metric in pairs(metrics) do
        if metric.added > 0 then
            redis.call('HSET', KEYS[1] .. ':metrics:' .. name, 'count', digits(stored(metric.count) + metric.added))
        end
    end
end
