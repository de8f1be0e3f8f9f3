-- uses: fields undamaged
-- What the end of a lease has to know of its job; nil when there is no row.
local function leased(id)
    local row = fields(id, 'state', 'attempts', 'group', 'reaped', 'floor', 'parent', 'parent_queue', 'parent_policy')
    return row and undamaged({ state = row[1], attempts = row[2], group = row[3], reaped = row[4], floor = row[5],
        parent = row[6], parent_queue = row[7], parent_policy = row[8] })
end
