-- A plain decimal up to the largest integer of the contract as a number, nil for every other text and for none. Doubles are
-- exact up to it.
local function decimal(text)
    if text and #text <= 16 and (text == '0' or string.find(text, '^[1-9][0-9]*$')) then
        local value = tonumber(text)
        return value <= 9007199254740991 and value or nil
    end
end
