-- A refusal leaves the transition from wherever it is found, always before the first write.
local function refuse(text)
    error(text, 0)
end
