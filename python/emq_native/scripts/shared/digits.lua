-- A whole number as plain decimal text. It stops at the largest integer of the contract: what is beyond counts as absent.
local function digits(number)
    return string.format('%.0f', math.min(number, 9007199254740991))
end
