-- A refusal leaves the transition from wherever it is found, always before the first write.
local function refuse(text)
    error(redis.error_reply(text))
end
