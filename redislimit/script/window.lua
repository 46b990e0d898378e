-- window is FixedWindow and SlidingWindow. State: the start of the window, its
-- count, and that of the window before. Parameters: cost, limit, period, and
-- whether the window before weighs.
local fresh = '\0\0\0\0\0\0\240\255\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' -- -inf, 0, 0

-- atMost says whether a * b <= c * d, of whole numbers to 2^53, b and d above 0:
-- where a product is too large for a double, it compares a/d with c/b as
-- continued fractions, in which nothing is.
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

return function(pos, s, op)
  local n, limit, period, weighs
  n, limit, period, weighs, pos = unpack_('<dddd', args, pos)
  local elapsed = fmod(now, period)
  if elapsed < 0 then elapsed = elapsed + period end
  local start, count, before = now - elapsed, 0, 0
  if s then
    if #s ~= 24 then return pos end
    local a, b, c = unpack_('<ddd', s)
    if a > start then
      start, count, before, elapsed = a, b, c, 0
    elseif a == start then
      count, before = b, c
    elseif a + period == start then
      before = b * weighs
    end
  end
  local reply = s or fresh
  local room = limit - count - n
  if op == UNDO then
    local since = start - taken + fmod(taken, period) -- from the window of the take
    if since == 0 then
      count = max(count - n, 0)
    elseif since == period then
      before = max(before - n * weighs, 0)
    end
    n = 0
  end
  local fits = n <= 0 or room >= 0 and (before <= room or atMost(before, period - elapsed, room, period))
  if op ~= UNDO and (n == 0 or op == PEEK or op == TAKE and not fits) then return pos, fits, reply end
  count = max(min(count + n, MOST_UNITS), 0)
  local ends = start + period - now
  if count > 0 and weighs > 0 then ends = ends + period end
  if count == 0 and before == 0 then ends = 0 end
  return pos, fits, reply, pack('<ddd', start, count, before), ends
end
