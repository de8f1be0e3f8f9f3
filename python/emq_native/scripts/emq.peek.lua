-- EMQ.PEEK q id -> all fields of the row as a map, or null
-- uses: arity queue job_id
arity(1, 1)
queue()
local fields = call('HGETALL', BASE .. 'job:' .. job_id(ARGV[1]))
return next(fields) and fields or false
