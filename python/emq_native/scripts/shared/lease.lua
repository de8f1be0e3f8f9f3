-- uses: number clock digits
-- The deadline of a lease of so many milliseconds.
local function lease(text)
    local now = clock()
    return digits(now + number('lease', text, 1, nil, now))
end
