-- EMQ.PEEK q id -> all fields of the row as a map, or null
-- uses: arity queue job_id
arity(1, 1)
queue()
local row = redis.call('HGETALL', KEYS[1] .. ':job:' .. job_id(ARGV[1]))
return next(row) and row or false
