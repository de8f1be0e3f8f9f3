-- EMQ.SCHEDULE q id payload IN|AT ms -> 1 admitted, 0 the id exists
-- uses: arity queue due clock job_id see digits admit
arity(4, 4)
local word = timing(ARGV[3])
queue()
local time = due(word, ARGV[4], clock())
local id = job_id(ARGV[1])
see(BASE .. 'schedule', 'zset')
if see(row(id), 'hash') then
    return 0
end
admit(id, 'scheduled', ARGV[2])
call('ZADD', BASE .. 'schedule', digits(time), id)
return 1
