-- uses: fields undamaged
-- What moving a job, or serving it, has to know of it; nil when there is no row.
local function waiting(id)
    local row = fields(id, 'state', 'attempts', 'group', 'payload')
    return row and undamaged({ state = row[1], attempts = row[2], group = row[3], payload = row[4] })
end
