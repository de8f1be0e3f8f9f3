-- EMQ.MEXTEND q lease id token [id token ...] -> the ids whose lease was not extended
-- uses: arity members queue number clock job_id see load place digits many
arity(3, nil, 2)
local count = members((#ARGV - 1) / 2)
queue()
local now = clock()
local deadline = digits(now + number('lease', ARGV[1], 1, M, now))
for at = 1, count do
    job_id(ARGV[2 * at])
end
local active = BASE .. 'active'
see(active, 'zset')
local extended, refused = {}, {}
for at = 1, count do
    local id, token = ARGV[2 * at], ARGV[2 * at + 1]
    local job = load(id, { 'state', 'attempts', 'group' })
    if job and job.attempts == token and place(id, job) == active then
        extended[#extended + 1] = deadline
        extended[#extended + 1] = id
    else
        refused[#refused + 1] = id
    end
end
many('ZADD', active, extended)
return refused
