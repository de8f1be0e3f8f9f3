-- uses: fields undamaged
-- What moving a job has to know of it; nil when there is no row.
local function moving(id)
    local row = fields(id, 'state', 'attempts', 'group')
    return row and undamaged({ state = row[1], attempts = row[2], group = row[3] })
end
