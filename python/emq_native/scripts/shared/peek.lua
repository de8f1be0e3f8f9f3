-- uses: row sound_id
-- The named fields of a row, false where one is absent; nil when there is no row. What is no job id has none.
local function peek(id, fields)
    if not sound_id(id) then
        return nil
    end
    local values = call('HMGET', row(id), unpack(fields))
    local job, found = {}, false
    for at = 1, #fields do
        local value = values[at]
        job[fields[at]] = value
        found = found or value
    end
    if found or call('EXISTS', row(id)) == 1 then
        return job
    end
end
