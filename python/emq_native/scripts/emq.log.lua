-- EMQ.LOG q id line [KEEP n] -> the number of lines, -1 there is no such job
-- uses: arity options queue number job_id see
arity(2)
local given = options(3, { KEEP = true })
queue()
local keep = given.KEEP and number('keep', given.KEEP, 1, 10000)
local id = job_id(ARGV[1])
see('job:' .. id .. ':logs', 'list')
if not see('job:' .. id, 'hash') then
    return -1
end
local logs = KEYS[1] .. ':job:' .. id .. ':logs'
local length = redis.call('RPUSH', logs, ARGV[2])
if keep and length > keep then
    redis.call('LTRIM', logs, -keep, -1)
    length = keep
end
return length
