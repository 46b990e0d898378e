-- cycle decides Cycle.
-- State:      the start of the cycle; the units used of it and of later ones; when it is fresh again.
-- Parameters: cost, limit, period in us, and an instant from 0 to the period at which a cycle starts. For a WITHDRAW
--             also the start and the units after the booking, and those to restore.
local head, n, most, period, origin
local leftA, leftB, beforeA, beforeB
local function read(pos)
  head, n, most, period, origin, pos = unpack_('<Bc0dddd', args, pos)
  if special and special.given then leftA, leftB, beforeA, beforeB, pos = unpack_('<dddd', args, pos) end
  return pos
end
LIMIT
  local elapsed = fmod(now - origin, period)
  if elapsed < 0 then elapsed = elapsed + period end
  local start, used, cost = now - elapsed, 0, n
  if not (a < MOST_UNITS) then -- no cycle has it
    fits = nil
    break
  elseif a >= start then
    start, used = a, b
  elseif a > -inf then
    used = max(b - (start - a) / period * most, 0)
  end
  if op == UNDO then
    local since = fmod(special.taken - origin, period)
    if since < 0 then since = since + period end
    if start ~= special.taken - since then break end
    used, cost = max(used - cost, 0), 0
  end
  if op >= WHEN then
    local lacking = used + n - most
    local own = lacking > 0 and start + math.ceil(lacking / most) * period or now
    if op == WHEN then
      special.due = max(special.due, own)
      break
    elseif op == BOOK then
      local since = fmod(special.due - origin, period)
      if since < 0 then since = since + period end
      if own < special.due and special.due - since > start then
        used = max(used - (special.due - since - start) / period * most, 0)
        start = special.due - since
      end
      used = used + n
    elseif special.taken > now and a == leftA and b == leftB then
      start, used = beforeA, beforeB
    elseif used > most or start > now or special.past and start ~= special.taken - fmod(special.taken - origin, period) then
      break
    else
      used = max(used + n, 0)
    end
    need = now
    if used > 0 then need = max(start + floor((used + most - 1) / most) * period, special.due or now) end
    a, b, c = start, used, need
    break
  end
  fits = cost <= 0 or used + cost <= most
  if op ~= UNDO and cost == 0 or op == PEEK or op == TAKE and not fits then break end
  used, need = max(min(used + cost, MOST_UNITS), 0), now
  if used > 0 then need = start + floor((used + most - 1) / most) * period end
  a, b, c = start, used, need
