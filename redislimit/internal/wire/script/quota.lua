-- Quota (q). The script has no zone data, so the caller sends the boundaries of windows around the instant that it expects. If
-- the server's clock, or the last admission after its clock went back, lies elsewhere, the decision is asked again: see beyond.
-- State:      the instant of the last admission, which never decreases; the count since its window began; 0. Its identity in the
--             value is that of a fixed window whose ordinal has the high bit: other versions then keep it as one.
-- Parameters: cost, limit, three boundaries, and the longest window of the unit, by which no window holds the state. In us.
if quotas > 0 then
  function limits.q(p, op, a, b)
    local MOST_UNITS, n, most, first, middle, last = 2^53, p[1], p[2], p[3], p[4], p[5]
    if not (a < MOST_UNITS) then return end -- no quota has it
    local at, count = max(now, a), 0
    if at < first or at >= last then
      beyond = at
      return
    end
    local start, stop = first, middle
    if at >= middle then start, stop = middle, last end
    if a >= start then count = b end
    if op == 'undo' then
      if count == 0 or special.taken < start or special.taken >= stop then return true end
      n = -n
    end
    local fits = n <= most - count or n <= 0
    if n == 0 or op == 'peek' or op == 'take' and not fits or n < 0 and count == 0 then return fits end
    if n > 0 then a = at end
    count = max(min(count + n, MOST_UNITS), 0)
    return fits, count > 0 and a + p[6] or now, a, count, 0
  end
end
