-- EMQ.RESUME q -> 1
-- uses: arity queue see
arity(0, 0)
queue()
see('meta', 'hash')
redis.call('HDEL', KEYS[1] .. ':meta', 'paused')
return 1
