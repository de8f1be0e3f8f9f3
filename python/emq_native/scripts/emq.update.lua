-- EMQ.UPDATE q id payload -> 1, -1 there is no such job
-- uses: arity queue job_id see
arity(2, 2)
queue()
local row = BASE .. 'job:' .. job_id(ARGV[1])
if not see(row, 'hash') then
    return -1
end
call('HSET', row, 'payload', ARGV[2])
return 1
