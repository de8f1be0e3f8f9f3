-- EMQ.PAUSE q -> 1
-- uses: arity queue
arity(0, 0)
queue()
if redis.call('HEXISTS', KEYS[1] .. ':meta', 'paused') == 0 then
    redis.call('HSET', KEYS[1] .. ':meta', 'paused', '1')
end
return 1
