-- A plain decimal of at most 16 digits as a number, nil for every other text and for none.
local function decimal(text)
    if text and #text <= 16 and (text == '0' or string.find(text, '^[1-9][0-9]*$')) then
        return tonumber(text)
    end
end
