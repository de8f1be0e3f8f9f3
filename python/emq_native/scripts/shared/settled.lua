-- What the end of a lease has to know of a job.
local SETTLED = { 'state', 'attempts', 'group', 'reaped', 'floor', 'parent', 'parent_queue', 'parent_policy' }
