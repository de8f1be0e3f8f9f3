-- EMQ.MEXTEND q lease id token [id token ...] -> the ids whose lease was not extended
-- uses: arity members queue lease job_id see moving place many
arity(3, nil, 2)
local count = members((#ARGV - 1) / 2)
queue()
local deadline = lease(ARGV[1])
for at = 1, count do
    job_id(ARGV[2 * at])
end
see('active', 'zset')
local extended, refused = {}, {}
for at = 1, count do
    local id, token = ARGV[2 * at], ARGV[2 * at + 1]
    local job = moving(id)
    if job and job.attempts == token and place(id, job) == 'active' then
        extended[#extended + 1] = deadline
        extended[#extended + 1] = id
    else
        refused[#refused + 1] = id
    end
end
many('ZADD', 'active', extended)
return refused
