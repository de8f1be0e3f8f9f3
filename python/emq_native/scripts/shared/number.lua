-- uses: decimal
-- A number among the words, by default up to the largest integer of the contract. from: an instant that it is added to; the
-- sum is bounded likewise.
local function number(name, text, least, most, from)
    local value, largest = decimal(text), 9007199254740991
    if not value or value < least or value > (most or largest) or (from and from + value > largest) then
        error(string.format('ERR %s must be an integer between %.0f and %.0f', name, least, most or largest), 0)
    end
    return value
end
