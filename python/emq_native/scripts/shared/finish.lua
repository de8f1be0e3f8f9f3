-- uses: leave erase metrics parents
-- Ends a completed job and tells its parent.
local function finish(id, job, at, result)
    leave(id, job, at)
    erase(id)
    bump('completed')
    if job.parent then
        parents.completed(id, job, result)
    end
end
