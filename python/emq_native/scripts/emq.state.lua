-- EMQ.STATE q id -> the word for the place of the job
-- uses: arity queue job_id peek place
arity(1, 1)
queue()
local id = job_id(ARGV[1])
local words = { pending = 'pending', active = 'active', schedule = 'scheduled', dead = 'dead', held = 'awaiting_children' }
local known = {}
for name in pairs(words) do
    known[BASE .. name] = call('ZSCORE', BASE .. name, id)
end
local job = peek(id, { 'state', 'group' })
if not job then
    return 'absent'
end
local at = place(id, job, known)
if not at then
    return 'unknown'
end
return words[string.sub(at, #BASE + 1)] or 'pending'
