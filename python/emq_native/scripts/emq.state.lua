-- EMQ.STATE q id -> the word for the place of the job
-- uses: arity queue job_id fields place
arity(1, 1)
queue()
local id = job_id(ARGV[1])
local known = {}
for _, name in ipairs({ 'pending', 'active', 'schedule', 'dead', 'held' }) do
    known[name] = redis.call('ZSCORE', KEYS[1] .. ':' .. name, id)
end
local row = fields(id, 'state', 'group')
if not row then
    return 'absent'
end
local at = place(id, { state = row[1], group = row[2] }, known)
if not at then
    return 'unknown'
elseif at == 'active' or at == 'dead' then
    return at
end
return at == 'schedule' and 'scheduled' or at == 'held' and 'awaiting_children' or 'pending'
