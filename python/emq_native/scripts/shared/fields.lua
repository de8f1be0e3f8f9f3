-- uses: sound_id
-- The values of the named fields of a row, false where one is absent; nil when there is no row. What is no job id has none.
local function fields(id, ...)
    if not sound_id(id) then
        return nil
    end
    local values = redis.call('HMGET', KEYS[1] .. ':job:' .. id, ...)
    for at = 1, #values do
        if values[at] then
            return values
        end
    end
    return redis.call('EXISTS', KEYS[1] .. ':job:' .. id) == 1 and values or nil
end
