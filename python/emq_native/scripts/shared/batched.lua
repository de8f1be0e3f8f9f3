-- uses: many
-- Changes of places, kept back until flush so that each place is changed in few calls.
local removed, added = {}, {}
local function remove(key, id)
    local ids = removed[key]
    if not ids then
        ids = {}
        removed[key] = ids
    end
    ids[#ids + 1] = id
end
local function add(key, score, id)
    local members = added[key]
    if not members then
        members = {}
        added[key] = members
    end
    members[#members + 1] = score
    members[#members + 1] = id
end
local function flush()
    for key, ids in pairs(removed) do
        many('ZREM', key, ids)
    end
    for key, members in pairs(added) do
        many('ZADD', key, members)
    end
    removed, added = {}, {}
end
