-- uses: load place
local SERVED = { 'state', 'attempts', 'group', 'payload' }
-- The first jobs of a place, at most want, and the stale ids passed on the way, at most 1000: { id, job } each, and ids.
local function heads(key, want)
    local live, bad, at = {}, {}, 0
    while #live < want and #bad < 1000 do
        local ids = call('ZRANGE', key, at, at + math.min(want - #live, 1000) - 1)
        if #ids == 0 then
            break
        end
        for _, id in ipairs(ids) do
            local job = load(id, SERVED)
            if job and (home(job) == key or place(id, job) == key) then
                live[#live + 1] = { id, job }
            else
                bad[#bad + 1] = id
                if #bad == 1000 then
                    break
                end
            end
        end
        at = at + #ids
    end
    return live, bad
end
