local function erase(id)
    local row = KEYS[1] .. ':job:' .. id
    redis.call('DEL', row, row .. ':logs', row .. ':lock', row .. ':dependencies', row .. ':processed', row .. ':failed',
        row .. ':unsuccessful')
end
