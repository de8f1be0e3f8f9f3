-- uses: decimal
-- A number that the contract stored itself; 0 when it is absent or unsound.
local function stored(text)
    return decimal(text) or 0
end
