-- uses: fields
-- What the end of a job has to know of it, and so of its parent; nil when there is no row.
local function kin(id)
    local row = fields(id, 'state', 'group', 'parent', 'parent_queue', 'parent_policy')
    return row and { state = row[1], group = row[2], parent = row[3], parent_queue = row[4], parent_policy = row[5] }
end
