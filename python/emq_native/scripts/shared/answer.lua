-- A refusal, and an error that a read of another kind of key raised, begins with its class and is answered word for word.
-- What begins otherwise is a fault of the script itself.
local served, answer = pcall(transition)
if served then
    return answer
end
if string.find(answer, '^[A-Z]+ ') then
    return redis.error_reply(answer)
end
error(answer, 0)
