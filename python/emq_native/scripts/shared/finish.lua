-- uses: leave erase metrics done_up
-- Ends a completed job.
local function finish(id, job, at, result)
    leave(id, job, at)
    erase(id)
    bump('completed')
    done_up(id, job, result)
end
