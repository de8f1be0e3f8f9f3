-- EMQ.GCOUNTS q [group ...] -> [group, waiting, active] for each group named, else for every group that has a job
-- uses: arity queue group_name see stored sort_bytes
arity(0)
queue()
local groups, base = {}, KEYS[1] .. ':'
for at, text in ipairs(ARGV) do
    groups[at] = group_name(text)
end
see('lanes', 'set')
see('gactive', 'hash')
local most = #groups
if most == 0 then
    local known = {}
    for _, list in ipairs({ redis.call('SMEMBERS', base .. 'lanes'), redis.call('HKEYS', base .. 'gactive') }) do
        for _, group in ipairs(list) do
            if not known[group] then
                known[group] = true
                groups[#groups + 1] = group
            end
        end
    end
    sort_bytes(groups)
    most = math.min(#groups, 10000)
end
local rows = {}
for at = 1, most do
    local group = groups[at]
    local waiting = redis.call('ZCARD', base .. 'g:' .. group .. ':pending')
    rows[at] = { group, waiting, stored(redis.call('HGET', base .. 'gactive', group)) }
end
return rows
