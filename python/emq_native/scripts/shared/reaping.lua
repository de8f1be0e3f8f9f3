-- uses: number
-- LIMIT and MAX among the options, tested in the order in which they came.
local function reaping(given)
    local limit, max = 1000, nil
    for _, word in ipairs(given) do
        if word == 'LIMIT' then
            limit = number('limit', given.LIMIT, 1, 10000)
        else
            max = number('max', given.MAX, 1, 2147483647)
        end
    end
    return limit, max
end
