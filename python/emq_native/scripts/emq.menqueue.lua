-- EMQ.MENQUEUE q id payload [id payload ...] -> 1 or 0 for each, as ENQUEUE answers
-- uses: arity members queue job_id see admit many
arity(2, nil, 2)
local count = members(#ARGV / 2)
queue()
for at = 1, count do
    job_id(ARGV[2 * at - 1])
end
see('pending', 'zset')
local exists, listed, replies = {}, {}, {}
for at = 1, count do
    local id = ARGV[2 * at - 1]
    exists[id] = see('job:' .. id, 'hash')
end
for at = 1, count do
    local id = ARGV[2 * at - 1]
    replies[at] = exists[id] and 0 or 1
    if not exists[id] then
        exists[id] = true
        admit(id, 'pending', ARGV[2 * at])
        listed[#listed + 1] = '0'
        listed[#listed + 1] = id
    end
end
many('ZADD', 'pending', listed)
return replies
