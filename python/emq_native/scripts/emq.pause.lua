-- EMQ.PAUSE q -> 1
-- uses: arity queue
arity(0, 0)
queue()
if call('HEXISTS', BASE .. 'meta', 'paused') == 0 then
    call('HSET', BASE .. 'meta', 'paused', '1')
end
return 1
