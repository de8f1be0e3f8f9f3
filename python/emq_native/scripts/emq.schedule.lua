-- EMQ.SCHEDULE q id payload IN|AT ms -> 1 admitted, 0 the id exists
-- uses: arity queue due job_id see admit
arity(4, 4)
local word = timing(ARGV[3])
queue()
local time = due(word, ARGV[4])
local id = job_id(ARGV[1])
see('schedule', 'zset')
if see('job:' .. id, 'hash') then
    return 0
end
admit(id, 'scheduled', ARGV[2])
redis.call('ZADD', KEYS[1] .. ':schedule', time, id)
return 1
