-- The number of members of a list, bounded so that the work of one call is.
local function members(count)
    if count > 10000 then
        error('ERR at most 10000 members in one call', 0)
    end
    return count
end
