-- cycle is Cycle. State: the start of the cycle, and the permits used of it and
-- of those after it. Parameters: cost, limit, period, and an instant from 0 to
-- the period at which a cycle starts.
local fresh = '\0\0\0\0\0\0\240\255\0\0\0\0\0\0\0\0' -- -inf, 0
return function(pos, s, op)
  local n, limit, period, origin
  n, limit, period, origin, pos = unpack_('<dddd', args, pos)
  local elapsed = fmod(now - origin, period)
  if elapsed < 0 then elapsed = elapsed + period end
  local start, used = now - elapsed, 0
  if s then
    if #s ~= 16 then return pos end
    local a, b = unpack_('<dd', s)
    if a >= start then
      start, used = a, b
    else
      used = max(b - (start - a) / period * limit, 0)
    end
  end
  local reply = s or fresh
  if op == UNDO then
    if start == taken - fmod(taken - origin, period) then used = max(used - n, 0) end
    n = 0
  end
  local fits = n <= 0 or used + n <= limit
  if op ~= UNDO and n == 0 or op == PEEK or op == TAKE and not fits then return pos, fits, reply end
  used = max(min(used + n, MOST_UNITS), 0)
  local cycles = floor((used + limit - 1) / limit)
  return pos, fits, reply, pack('<dd', start, used), used > 0 and start + cycles * period - now or 0
end
