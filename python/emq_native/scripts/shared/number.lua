-- uses: refuse decimal
-- The largest integer of the contract; doubles are exact up to it.
local M = 9007199254740991
-- A number among the words. from: the instant that it is added to; the sum has the same bound.
local function number(name, text, least, most, from)
    local value = decimal(text)
    if not value or value < least or value > most or (from and from + value > M) then
        refuse(string.format('ERR %s must be an integer between %.0f and %.0f', name, least, most))
    end
    return value
end
