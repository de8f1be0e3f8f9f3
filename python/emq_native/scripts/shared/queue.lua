-- Every key is built on KEYS[1] alone, whatever else was declared, so no call can reach two queues.
local function queue()
    local name = string.match(KEYS[1], '^emq:{([A-Za-z0-9._-]+)}$')
    if not name or #name > 128 or name == 'emq' then
        error('ERR queue key must be emq:{name}, name of 1 to 128 of A-Z a-z 0-9 . _ -', 0)
    end
end
