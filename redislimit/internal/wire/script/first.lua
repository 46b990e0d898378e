-- FirstWindow (i).
-- State:      the start of the window; its count; 0. Without units it is that of a new key. Its identity in the value is that of a
--             fixed window whose ordinal has the second highest bit: versions that do not know it then keep it as one.
-- Parameters: cost, limit, period in us.
if firsts > 0 then
  function limits.i(p, op, a, b)
    local MOST_UNITS, n, most, period = 2^53, p[1], p[2], p[3]
    if not (a < MOST_UNITS) then return end -- no window has it
    local start, count = a, b
    if now >= a + period then start, count = now, 0 end
    if op == 'undo' then
      if count == 0 or special.taken < start or special.taken >= start + period then return true end
      n = -n
    end
    local fits = n <= 0 or count + n <= most
    if n == 0 or op == 'peek' or op == 'take' and not fits or n < 0 and count == 0 then return fits end
    count = max(min(count + n, MOST_UNITS), 0)
    if count == 0 then return fits, now, -inf, 0, 0 end
    return fits, start + period, start, count, 0
  end
end
