-- window decides FixedWindow and SlidingWindow.
-- State:      the expiry of the key; the start of the window; its count; the previous window's count.
-- Parameters: cost, limit, period in us, and 1 if the previous window weighs, otherwise 0.
local fresh = pack('<dddd', 0, -inf, 0, 0)
local n, limit, period, weighs
local function read(pos)
  n, limit, period, weighs, pos = unpack_('<dddd', args, pos)
  return pos
end

-- atMost reports whether a * b <= c * d, for whole numbers to 2^53 with b and d above 0. If a
-- product is too large for a double, it compares a/d with c/b as continued fractions, whose terms
-- stay small.
local function atMost(a, b, c, d)
  if a * b < MOST_UNITS and c * d < MOST_UNITS then
    return a * b <= c * d
  end
  while true do
    local x, y = fmod(a, d), fmod(c, b)
    local p, q = (a - x) / d, (c - y) / b
    if p ~= q then return p < q end
    if x == 0 then return true end
    if y == 0 then return false end
    a, d, c, b = b, y, d, x
  end
end

return read, function(s, op)
  local elapsed = fmod(now, period)
  if elapsed < 0 then elapsed = elapsed + period end
  local till, start, count, before = 0, now - elapsed, 0, 0
  if s then
    if #s ~= 32 then return end
    local a, b, c
    till, a, b, c = unpack_('<dddd', s)
    if a > start then
      start, count, before, elapsed = a, b, c, 0
    elseif a == start then
      count, before = b, c
    elseif a + period == start then
      before = b * weighs
    end
  end
  local reply, cost = s or fresh, n
  local room = limit - count - cost
  if op == UNDO then
    local since = start - taken + fmod(taken, period) -- from the window of the take
    if since == 0 then
      count = max(count - cost, 0)
    elseif since == period then
      before = max(before - cost * weighs, 0)
    end
    cost = 0
  end
  local fits = cost <= 0 or room >= 0 and (before <= room or atMost(before, period - elapsed, room, period))
  if op ~= UNDO and (cost == 0 or op == PEEK or op == TAKE and not fits) then return fits, reply end
  count = max(min(count + cost, MOST_UNITS), 0)
  local need = start + period
  if count > 0 and weighs > 0 then need = need + period end
  if count == 0 and before == 0 then need = now end
  local moved
  till, moved = lasts(till, need)
  return fits, reply, pack('<dddd', till, start, count, before), moved
end
