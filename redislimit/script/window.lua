-- window decides FixedWindow and SlidingWindow.
-- State:      the start of the window; its count; the previous window's count.
-- Parameters: cost, limit, period in us, and 1 if the previous window weighs, otherwise 0.
local head, n, most, period, weighs
local function read(pos)
  head, n, most, period, weighs, pos = unpack_('<Bc0dddd', args, pos)
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
LIMIT
  local elapsed = fmod(now, period)
  if elapsed < 0 then elapsed = elapsed + period end
  local start, count, before, cost = now - elapsed, 0, 0, n
  if not (a < MOST_UNITS) then -- no window has it
    fits = nil
    break
  elseif a > start then
    start, count, before, elapsed = a, b, c, 0
  elseif a == start then
    count, before = b, c
  elseif a + period == start then
    before = b * weighs
  end
  local room = most - count - cost
  if op == UNDO then
    local since = fmod(special.taken, period)
    if since < 0 then since = since + period end
    since = start - special.taken + since -- from the window of the take
    if since == 0 then
      count = max(count - cost, 0)
    elseif since == period then
      before = max(before - cost * weighs, 0)
    else
      break
    end
    cost = 0
  end
  fits = cost <= 0 or room >= 0 and (before <= room or atMost(before, period - elapsed, room, period))
  if op ~= UNDO and (cost == 0 or op == PEEK or not fits and op ~= RECORD) then
    if op == WHEN then -- to a few us, for callers in line
      local till = start + period
      if room < 0 and weighs > 0 and count > 0 then
        till = till + max(math.ceil(period - (most - cost) * period / count), 0)
      elseif room >= 0 then
        till = start + math.ceil(period - room * period / before)
      end
      special.due = max(special.due, till)
    end
    break
  end
  count = max(min(count + cost, MOST_UNITS), 0)
  need = start + period
  if count > 0 and weighs > 0 then need = need + period end
  if count == 0 and before == 0 then need = now end
  a, b, c = start, count, before
