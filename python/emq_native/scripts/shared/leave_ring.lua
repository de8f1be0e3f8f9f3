-- uses: lanes many
-- From here on lanes leave the ring together, when lanes.leave is called. Each removal searches the ring, from its head: when
-- many lanes leave a long ring, it is written anew instead.
local function leave_later()
    lanes.leaving = {}
    function lanes.leave()
        local ring, gone, number, staying = KEYS[1] .. ':ring', lanes.leaving, 0, {}
        lanes.leaving = {}
        for _ in pairs(gone) do
            number = number + 1
        end
        if number <= 16 then
            for group in pairs(gone) do
                redis.call('LREM', ring, 1, group)
            end
            return
        end
        for _, group in ipairs(redis.call('LRANGE', ring, 0, -1)) do
            if not gone[group] then
                staying[#staying + 1] = group
            end
        end
        redis.call('DEL', ring)
        many('RPUSH', 'ring', staying)
    end
end
