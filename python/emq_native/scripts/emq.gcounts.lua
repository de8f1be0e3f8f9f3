-- EMQ.GCOUNTS q [group ...] -> [group, waiting, active] for each group named, else for every group that has a job
-- uses: arity queue group_name see lane_key stored before
arity(0)
queue()
local groups = {}
for at, text in ipairs(ARGV) do
    groups[at] = group_name(text)
end
local gactive = BASE .. 'gactive'
see(BASE .. 'lanes', 'set')
see(gactive, 'hash')
if #groups == 0 then
    local known = {}
    for _, list in ipairs({ call('SMEMBERS', BASE .. 'lanes'), call('HKEYS', gactive) }) do
        for _, group in ipairs(list) do
            if not known[group] then
                known[group] = true
                groups[#groups + 1] = group
            end
        end
    end
    table.sort(groups, before)
end
local rows = {}
for at = 1, #ARGV > 0 and #groups or math.min(#groups, 10000) do
    local group = groups[at]
    rows[at] = { group, call('ZCARD', lane_key(group)), stored(call('HGET', gactive, group)) }
end
return rows
