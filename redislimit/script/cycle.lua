-- cycle decides Cycle.
-- State:      the expiry of the key; the start of the cycle; the units used of it and of later ones.
-- Parameters: cost, limit, period in us, and an instant from 0 to the period at which a cycle starts.
local fresh = pack('<ddd', 0, -inf, 0)
local n, limit, period, origin
local function read(pos)
  n, limit, period, origin, pos = unpack_('<dddd', args, pos)
  return pos
end

return read, function(s, op)
  local elapsed = fmod(now - origin, period)
  if elapsed < 0 then elapsed = elapsed + period end
  local till, start, used = 0, now - elapsed, 0
  if s then
    if #s ~= 24 then return end
    local a, b
    till, a, b = unpack_('<ddd', s)
    if a >= start then
      start, used = a, b
    else
      used = max(b - (start - a) / period * limit, 0)
    end
  end
  local reply, cost = s or fresh, n
  if op == UNDO then
    if start == taken - fmod(taken - origin, period) then used = max(used - cost, 0) end
    cost = 0
  end
  local fits = cost <= 0 or used + cost <= limit
  if op ~= UNDO and cost == 0 or op == PEEK or op == TAKE and not fits then return fits, reply end
  used = max(min(used + cost, MOST_UNITS), 0)
  local need, moved = now, nil
  if used > 0 then need = start + floor((used + limit - 1) / limit) * period end
  till, moved = lasts(till, need)
  return fits, reply, pack('<ddd', till, start, used), moved
end
