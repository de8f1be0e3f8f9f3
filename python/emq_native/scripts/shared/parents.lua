-- uses: see kin place lanes metrics stored digits
-- What concerns parents is set up when the first job with a parent is met. A death climbs at most 8 levels in one call.
local parents
local function open_parents()
    local base, row = KEYS[1] .. ':', KEYS[1] .. ':job:'
    parents = {}
    -- Tests every key that the end of a child may write: those of its parent, and when it failed of the parents above.
    function parents.see(job, failed, level)
        if not job.parent then
            return
        end
        if job.parent_queue then
            see('flow:outbox', 'list')
            return
        end
        local above = kin(job.parent)
        if not above then
            return
        end
        see('job:' .. job.parent .. ':dependencies', 'string')
        for _, name in ipairs({ ':processed', ':failed', ':unsuccessful' }) do
            see('job:' .. job.parent .. name, 'hash')
        end
        for _, name in ipairs({ 'pending', 'active', 'schedule', 'dead', 'held' }) do
            see(name, 'zset')
        end
        see_metric('failed')
        see_lane(above.group)
        if not failed or job.parent_policy == 'id' then
            return
        end
        if level == 8 then
            see('flow:outbox', 'list')
        else
            parents.see(above, true, level + 1)
        end
    end
    local function noted(parent, child)
        for _, name in ipairs({ ':processed', ':failed', ':unsuccessful' }) do
            if redis.call('HEXISTS', row .. parent .. name, child) == 1 then
                return true
            end
        end
    end
    local function post(...)
        redis.call('RPUSH', base .. 'flow:outbox', table.concat({ ... }, '\0'))
    end
    -- One child less is open; at none the parent waits to be claimed.
    local function countdown(parent, job)
        local open = math.max(0, stored(redis.call('GET', row .. parent .. ':dependencies')) - 1)
        redis.call('SET', row .. parent .. ':dependencies', digits(open))
        if open > 0 or place(parent, job) ~= 'held' then
            return
        end
        redis.call('ZREM', base .. 'held', parent)
        redis.call('HSET', row .. parent, 'state', 'pending')
        redis.call('ZADD', base .. (job.group and 'g:' .. job.group .. ':pending' or 'pending'), '0', parent)
        if job.group then
            lanes.wait(job.group, 1)
        end
    end
    function parents.completed(id, job, result)
        if job.parent_queue then
            post(job.parent_queue, job.parent, id, result)
            return
        end
        local above = kin(job.parent)
        if above and not noted(job.parent, id) then
            redis.call('HSET', row .. job.parent .. ':processed', id, result)
            countdown(job.parent, above)
        end
    end
    -- Unless the failure is to be ignored, a parent that waits for its children dies of it, and so on upward.
    function parents.failed(id, job, text, level)
        local policy = job.parent_policy == 'id' and 'id' or 'fp'
        if job.parent_queue or level == 8 then
            post('', 'fail', job.parent_queue or string.sub(KEYS[1], 6, -2), job.parent, id, policy, text)
            return
        end
        local above = kin(job.parent)
        if not above or noted(job.parent, id) then
            return
        end
        if policy == 'id' then
            redis.call('HSET', row .. job.parent .. ':unsuccessful', id, text)
            countdown(job.parent, above)
            return
        end
        redis.call('HSET', row .. job.parent .. ':failed', id, text)
        if place(job.parent, above) ~= 'held' then
            return
        end
        redis.call('ZREM', base .. 'held', job.parent)
        redis.call('HSET', row .. job.parent, 'state', 'dead', 'last_error', 'child failed: ' .. id)
        redis.call('ZADD', base .. 'dead', '0', job.parent)
        bump('failed')
        if above.parent then
            parents.failed(job.parent, above, 'child failed: ' .. id, level + 1)
        end
    end
end
local function see_up(job, failed)
    if not job.parent then
        return
    end
    if not parents then
        open_parents()
    end
    parents.see(job, failed, 1)
end
