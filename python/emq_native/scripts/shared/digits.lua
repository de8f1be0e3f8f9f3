-- A whole number as plain decimal text.
local function digits(number)
    return string.format('%.0f', number)
end
