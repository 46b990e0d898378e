-- bucket is TokenBucket and LeakyBucket. State: the instant TAT as whole us and
-- a rest in 1/den us, and den. Parameters: what the cost and the burst take,
-- each as whole and rest, den, and the sign of the cost.
local fresh = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' -- 0, 0, 0

-- reread is a rest in 1/from us as one in 1/den us, rounded up: rest * den,
-- which needs 60 bits, in two limbs.
local function reread(rest, from, den)
  local low = fmod(rest, 32768)
  local a = (rest - low) / 32768 * den
  local r = fmod(a, from)
  local b = r * 32768 + low * den
  local s = fmod(b, from)
  return (a - r) / from * 32768 + (b - s) / from + (s > 0 and 1 or 0)
end

return function(pos, s, op)
  local cw, cf, bw, bf, den, sign
  cw, cf, bw, bf, den, sign, pos = unpack_('<dddddd', args, pos)
  local w, f = now, 0
  if s then
    if #s ~= 24 then return pos end
    local d
    w, f, d = unpack_('<ddd', s)
    if w < now then
      w, f = now, 0
    elseif d ~= den then
      f = reread(f, d, den)
      if f >= den then w, f = w + 1, 0 end
    end
  end
  local reply = s or fresh
  if sign == 0 then return pos, true, reply end
  if sign < 0 or op == UNDO then
    w, f = w - cw, f - cf
    if f < 0 then w, f = w - 1, f + den end
    if w < now then w, f = now, 0 end
    return pos, true, reply, pack('<ddd', w, f, den), w - now + (f > 0 and 1 or 0)
  end
  local tw, tf = w + cw, f + cf
  if tf >= den then tw, tf = tw + 1, tf - den end
  local ahead = tw - now
  local fits = ahead < bw or ahead == bw and tf <= bf
  if op == PEEK or op == TAKE and not fits then return pos, fits, reply end
  if ahead > MOST_AHEAD then
    tw, tf = max(w, now + MOST_AHEAD), 0
    ahead = tw - now
  end
  return pos, fits, reply, pack('<ddd', tw, tf, den), ahead + (tf > 0 and 1 or 0)
end
