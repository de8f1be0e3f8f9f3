-- uses: place
-- Whether a listed job is there by right: the entry of a job that is elsewhere, or of none, is stale.
local function live(id, job, name)
    return job and (home(job) == name or place(id, job) == name)
end
