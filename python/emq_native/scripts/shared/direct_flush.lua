-- uses: direct
-- Nothing was kept back.
local function flush() end
