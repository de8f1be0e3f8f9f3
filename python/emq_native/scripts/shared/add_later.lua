-- uses: many
-- Lists jobs in places, kept back so that each place is changed in few calls.
local added = {}
local function add(name, score, id)
    local members = added[name]
    if not members then
        members = {}
        added[name] = members
    end
    members[#members + 1] = score
    members[#members + 1] = id
end
local function flush_added()
    for name, members in pairs(added) do
        many('ZADD', name, members)
    end
end
