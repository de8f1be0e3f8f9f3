-- The order of two texts by their bytes: Lua's own order follows the server's locale.
local function before(a, b)
    for at = 1, math.min(#a, #b) do
        local x, y = string.byte(a, at), string.byte(b, at)
        if x ~= y then
            return x < y
        end
    end
    return #a < #b
end
