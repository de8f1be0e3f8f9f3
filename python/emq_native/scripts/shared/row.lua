-- uses: queue
local function row(id)
    return BASE .. 'job:' .. id
end
