-- One command over many values, in slices that fit on Lua's stack; 1000 is even, so pairs stay together.
local function many(command, name, values)
    for first = 1, #values, 1000 do
        redis.call(command, KEYS[1] .. ':' .. name, unpack(values, first, math.min(first + 999, #values)))
    end
end
