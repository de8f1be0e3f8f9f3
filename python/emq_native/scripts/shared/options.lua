-- The option words from ARGV[first] on, in any letter case and order, each at most once.
-- known: word -> whether a value follows it. Answers word -> its value, or true, and the list of words as they came.
local function options(first, known)
    local given, at = {}, first
    while at <= #ARGV do
        local word = string.upper(ARGV[at])
        local valued = known[word]
        if valued then
            at = at + 1
        end
        if valued == nil or given[word] or at > #ARGV then
            error('ERR syntax error', 0)
        end
        given[word] = valued and ARGV[at] or true
        given[#given + 1] = word
        at = at + 1
    end
    return given
end
