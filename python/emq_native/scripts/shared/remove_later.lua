-- uses: many
-- Takes jobs off places, kept back so that each place is changed in few calls.
local removed = {}
local function remove(name, id)
    local ids = removed[name]
    if not ids then
        ids = {}
        removed[name] = ids
    end
    ids[#ids + 1] = id
end
local function flush_removed()
    for name, ids in pairs(removed) do
        many('ZREM', name, ids)
    end
end
