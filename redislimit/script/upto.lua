-- upto turns a decision that takes its costs as many times as they fit, up to most,
-- into a TAKE: it multiplies the costs in args by that number, and returns it. The
-- number is 1 if the costs do not fit once, which the TAKE then refuses.

-- multiplied returns the parameters of a part, from byte p on and before behind, at
-- k times its cost. The rest of a bucket's cost times k needs 60 bits, in two limbs.
local function multiplied(kind, p, behind, k)
  if kind ~= BUCKET then return pack('<d', k * unpack_('<d', args, p)) .. sub(args, p + 8, behind - 1) end
  local whole, rest, _, _, den = unpack_('<ddddd', args, p)
  local low = fmod(k, 32768)
  local a = (k - low) / 32768 * rest
  local r = fmod(a, den)
  local b = r * 32768 + low * rest
  local s = fmod(b, den)
  return pack('<dd', whole * k + (a - r) / den * 32768 + (b - s) / den, s) .. sub(args, p + 16, behind - 1)
end

-- fitting returns how many times the cost of a part fits, up to most. Logs, gates
-- and slots reply with their room; for other kinds it searches by halves. It is 0 if
-- the state cannot be read.
local function fitting(kind, key, p, behind, most)
  local limit, whole, s, tail = kinds[kind], args, state(key), tails[key]
  local function fits(k)
    args = multiplied(kind, p, behind, k)
    limit[1](1)
    args = whole
    return limit[2](s, PEEK, tail)
  end
  local all, reply = fits(most)
  if all then return most end
  if all == nil then return 0 end
  if kind >= LOG then return floor(unpack_('<d', reply, 17) / unpack_('<d', args, p)) end
  local low, high = 0, most
  while high - low > 1 do
    local mid = floor((low + high) / 2)
    if fits(mid) then low = mid else high = mid end
  end
  return low
end

return function(pos, parts)
  local most, start = unpack_('<d', args, pos)
  local kind, key, behind
  local p = start
  for _ = 1, parts do
    kind, key, p = unpack_('<BH', args, p)
    behind = kinds[kind][1](p)
    if most > 1 then most = max(fitting(kind, key, p, behind, most), 1) end
    p = behind
  end
  if most > 1 then
    local pieces, from = { sub(args, 1, start - 1) }, start
    for i = 1, parts do
      kind, key, p = unpack_('<BH', args, from)
      behind = kinds[kind][1](p)
      pieces[i + 1] = sub(args, from, p - 1) .. multiplied(kind, p, behind, most)
      from = behind
    end
    pieces[parts + 2] = sub(args, from)
    args = table.concat(pieces)
  end
  return pack('<d', most)
end
