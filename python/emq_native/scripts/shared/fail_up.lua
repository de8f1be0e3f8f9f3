-- uses: parents
-- Tells the parent, if there is one, that a child failed.
local function fail_up(id, job, text)
    if job.parent then
        parents.failed(id, job, text, 0)
    end
end
