-- uses: row
local function erase(id)
    local key = row(id)
    call('DEL', key, key .. ':logs', key .. ':lock', key .. ':dependencies', key .. ':processed', key .. ':failed',
        key .. ':unsuccessful')
end
