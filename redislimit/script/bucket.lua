-- bucket decides TokenBucket and LeakyBucket.
-- State:      the expiry of the key, the instant TAT as whole us and a rest in 1/den us, and den.
-- Parameters: the times of the cost and of the burst, each as whole us and a rest in 1/den us; den;
--             the sign of the cost.
local fresh = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
local cw, cf, bw, bf, den, sign
local function read(pos)
  cw, cf, bw, bf, den, sign, pos = unpack_('<dddddd', args, pos)
  return pos
end

-- reread converts a rest in 1/from us to one in 1/den us, rounded up. The product rest * den
-- needs 60 bits, so it works in two limbs.
local function reread(rest, from)
  local low = fmod(rest, 32768)
  local a = (rest - low) / 32768 * den
  local r = fmod(a, from)
  local b = r * 32768 + low * den
  local s = fmod(b, from)
  return (a - r) / from * 32768 + (b - s) / from + (s > 0 and 1 or 0)
end

return read, function(s, op)
  local till, w, f = 0, now, 0
  if s then
    if #s ~= 32 then return end
    local d
    till, w, f, d = unpack_('<dddd', s)
    if w < now then
      w, f = now, 0
    elseif d ~= den then
      f = reread(f, d)
      if f >= den then w, f = w + 1, 0 end
    end
  end
  local reply, fits = s or fresh, true
  if sign == 0 then return true, reply end
  if sign < 0 or op == UNDO then
    w, f = w - cw, f - cf
    if f < 0 then w, f = w - 1, f + den end
    if w < now then w, f = now, 0 end
  else
    local tw, tf = w + cw, f + cf
    if tf >= den then tw, tf = tw + 1, tf - den end
    local ahead = tw - now
    fits = ahead < bw or ahead == bw and tf <= bf
    if op == PEEK or op == TAKE and not fits then return fits, reply end
    if ahead > MOST_AHEAD then
      tw, tf = max(w, now + MOST_AHEAD), 0
    end
    w, f = tw, tf
  end
  local moved
  till, moved = lasts(till, f > 0 and w + 1 or w)
  return fits, reply, pack('<dddd', till, w, f, den), moved
end
