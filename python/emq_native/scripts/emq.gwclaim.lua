-- EMQ.GWCLAIM q lease -> [id, payload, attempts, group] for as many jobs of one lane as its weight says
-- uses: arity queue lease stored see remove_later add_later serve_lane
arity(1, 1)
queue()
local deadline = lease(ARGV[1])
see('gweight', 'hash')
local taken = serve_lane(deadline, function(group)
    return math.max(1, math.min(10000, stored(redis.call('HGET', KEYS[1] .. ':gweight', group))))
end)
flush_removed()
flush_added()
return taken
