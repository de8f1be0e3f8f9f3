-- uses: waiting live
-- The first jobs of a place, at most want, and the stale ids passed on the way, at most 1000: { id, job } each, and ids.
local function heads(name, want)
    local jobs, stale, at = {}, {}, 0
    while #jobs < want and #stale < 1000 do
        local ids = redis.call('ZRANGE', KEYS[1] .. ':' .. name, at, at + math.min(want - #jobs, 1000) - 1)
        if #ids == 0 then
            break
        end
        for _, id in ipairs(ids) do
            local job = waiting(id)
            if live(id, job, name) then
                jobs[#jobs + 1] = { id, job }
            else
                stale[#stale + 1] = id
                if #stale == 1000 then
                    break
                end
            end
        end
        at = at + #ids
    end
    return jobs, stale
end
