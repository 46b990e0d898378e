-- Cycle (c).
-- State:      the start of the cycle; the units used of it and of later ones; when it is fresh again.
-- Parameters: cost, limit, period in us, and an instant from 0 to the period at which a cycle starts. For a withdraw also the
--             start and the units after the booking, and those to restore.
if cycles > 0 then
  -- startOf returns the start of the cycle of an instant.
  local function startOf(instant, period, origin)
    local elapsed = fmod(instant - origin, period)
    return instant - elapsed - (elapsed < 0 and period or 0)
  end

  function limits.c(p, op, a, b)
    local MOST_UNITS, n, most, period, origin = 2^53, p[1], p[2], p[3], p[4]
    local start, used, fits = startOf(now, period, origin), 0, true
    if not (a < MOST_UNITS) then return end -- no cycle has it
    if a >= start then
      start, used = a, b
    elseif a > -inf then
      used = max(b - (start - a) / period * most, 0)
    end
    if op == 'undo' then
      if used > most or start ~= startOf(special.taken, period, origin) then return true end
      used = max(used - n, 0)
    elseif op == 'when' or op == 'book' then
      local lacking = used + n - most
      local own = lacking > 0 and start + math.ceil(lacking / most) * period or now
      if op == 'when' then
        special.due = max(special.due, own)
        return true
      end
      local booked = startOf(special.due, period, origin)
      if own < special.due and booked > start then start, used = booked, max(used - (booked - start) / period * most, 0) end
      used = used + n
    elseif op == 'withdraw' then
      if special.taken > now and a == p[5] and b == p[6] then
        start, used = p[7], p[8]
      elseif used > most or start > now or start ~= startOf(special.taken, period, origin) then
        return true
      else
        used = max(used + n, 0)
      end
    else
      fits = n <= 0 or used + n <= most
      if n == 0 or op == 'peek' or op == 'take' and not fits then return fits end
      used = max(min(used + n, MOST_UNITS), 0)
    end
    local need = now
    if used > 0 then need = start + floor((used + most - 1) / most) * period end
    if used > 0 and (op == 'book' or op == 'withdraw') then need = max(need, special.due or now) end
    return fits, need, start, used, need
  end
end
