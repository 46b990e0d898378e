-- FixedWindow (f) and SlidingWindow (w).
-- State:      the start of the window; its count; the previous window's count.
-- Parameters: cost, limit, period in us, and 1 if the previous window weighs, otherwise 0.
if windows > 0 then
  -- atMost reports whether a * b <= c * d, for whole numbers to 2^53 with b and d above 0. If a product is too large for a
  -- double, it compares a/d with c/b as continued fractions, whose terms stay small.
  local function atMost(a, b, c, d)
    if a * b < 2^53 and c * d < 2^53 then return a * b <= c * d end
    while true do
      local x, y = fmod(a, d), fmod(c, b)
      local p, q = (a - x) / d, (c - y) / b
      if p ~= q then return p < q end
      if x == 0 then return true end
      if y == 0 then return false end
      a, d, c, b = b, y, d, x
    end
  end

  -- due returns, to a few us, when a cost fits, for callers in line.
  local function due(start, count, before, n, most, period, weighs)
    local room, till = most - count - n, start + period
    if room < 0 and weighs > 0 and count > 0 then return till + max(math.ceil(period - (most - n) * period / count), 0) end
    return room >= 0 and start + math.ceil(period - room * period / before) or till
  end

  local function window(p, op, a, b, c)
    local MOST_UNITS, n, most, period, weighs = 2^53, p[1], p[2], p[3], p[4]
    local elapsed = fmod(now, period)
    if elapsed < 0 then elapsed = elapsed + period end
    local start, count, before = now - elapsed, 0, 0
    if not (a < MOST_UNITS) then return end -- no window has it
    if a > start then
      start, count, before, elapsed = a, b, c, 0
    elseif a == start then
      count, before = b, c
    elseif a + period == start then
      before = b * weighs
    end
    if op == 'undo' then
      local since = fmod(special.taken, period)
      if since < 0 then since = since + period end
      since = start - special.taken + since -- from the window of the take
      if since ~= 0 and since ~= period then return true end
      if since == 0 then count = max(count - n, 0) else before = max(before - n * weighs, 0) end
      n = 0
    end
    local room = most - count - n
    local fits = n <= 0 or room >= 0 and (before <= room or atMost(before, period - elapsed, room, period))
    if op ~= 'undo' and (n == 0 or op == 'peek' or not fits and op ~= 'record') then
      if op == 'when' then special.due = max(special.due, due(start, count, before, n, most, period, weighs)) end
      return fits
    end
    count = max(min(count + n, MOST_UNITS), 0)
    local need = start + period
    if count > 0 and weighs > 0 then need = need + period end
    if count == 0 and before == 0 then need = now end
    return fits, need, start, count, before
  end
  limits.f, limits.w = window, window
end
