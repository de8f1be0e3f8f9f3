-- EMQ.RESUME q -> 1
-- uses: arity queue see
arity(0, 0)
queue()
see(BASE .. 'meta', 'hash')
call('HDEL', BASE .. 'meta', 'paused')
return 1
