-- EMQ.EXTEND q id token lease -> 1, -1 there is no such job
-- uses: arity queue number clock job_id load place digits
arity(3, 3)
queue()
local now = clock()
local deadline = now + number('lease', ARGV[3], 1, M, now)
local id = job_id(ARGV[1])
local active = BASE .. 'active'
local known = { [active] = call('ZSCORE', active, id) }
local job = load(id, { 'state', 'attempts', 'group' })
if not job then
    return -1
end
if job.attempts ~= ARGV[2] then
    refuse('EMQSTALE extend token mismatch')
end
if place(id, job, known) ~= active then
    refuse('EMQSTATE job is not active')
end
call('ZADD', active, digits(deadline), id)
return 1
