-- The words after the queue key number from least to most; a tail takes any number of whole members from least on.
local function arity(least, most, member)
    local count = #ARGV
    if #KEYS == 0 or count < least or (most and count > most) or (member and (count - least) % member ~= 0) then
        error("ERR wrong number of arguments for '" .. VERB .. "' command", 0)
    end
end
