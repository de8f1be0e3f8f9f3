-- An error reply is a table, ours as well as one that a read of another kind of key raised, and is answered as it is.
local served, answer = pcall(transition)
if served or type(answer) == 'table' then
    return answer
end
error(answer, 0)
