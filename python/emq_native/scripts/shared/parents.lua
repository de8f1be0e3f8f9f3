-- uses: see peek place lanes metrics join
-- How many levels a death climbs within one call.
local UP = 8
local KIN = { 'state', 'group', 'parent', 'parent_queue', 'parent_policy' }
local OUTBOX = BASE .. 'flow:outbox'
-- Tests every key that the end of this child may write: those of its parent, and of the parents above when it failed.
local function see_up(job, failed, level)
    if not job.parent then
        return
    end
    if job.parent_queue then
        see(OUTBOX, 'list')
        return
    end
    local above = peek(job.parent, KIN)
    if not above then
        return
    end
    see(row(job.parent) .. ':dependencies', 'string')
    for _, name in ipairs({ ':processed', ':failed', ':unsuccessful' }) do
        see(row(job.parent) .. name, 'hash')
    end
    for _, name in ipairs({ 'pending', 'active', 'schedule', 'dead', 'held' }) do
        see(BASE .. name, 'zset')
    end
    see_metric('failed')
    see_lane(above.group)
    if failed and job.parent_policy ~= 'id' then
        if level == UP then
            see(OUTBOX, 'list')
        else
            see_up(above, true, (level or 1) + 1)
        end
    end
end
local function noted(parent, child)
    for _, name in ipairs({ ':processed', ':failed', ':unsuccessful' }) do
        if call('HEXISTS', row(parent) .. name, child) == 1 then
            return true
        end
    end
end
local function entry(...)
    call('RPUSH', OUTBOX, table.concat({ ... }, '\0'))
end
-- One child less is open; at none the parent is released.
local function countdown(parent, job)
    local key = row(parent) .. ':dependencies'
    local open = math.max(0, stored(call('GET', key)) - 1)
    call('SET', key, digits(open))
    if open == 0 and place(parent, job) == BASE .. 'held' then
        remove(BASE .. 'held', parent)
        join(parent, job)
        flush()
    end
end
