-- upto turns a decision that takes its costs as many times as they fit, up to most,
-- into a TAKE. It returns that number and where the groups begin. The number is 1 if
-- the costs do not fit once, which the TAKE then refuses. Otherwise args are now the
-- groups of this decision alone, at that number of times their costs, and it also
-- returns the args of the call and where the decision ends.
local STEP_WORK = 2 -- of one limit, for each number that is tried

-- multiplied returns the parameters of a limit, from byte p on and before behind, at
-- k times its cost. The rest of a bucket's cost times k needs 60 bits, in two limbs.
local function multiplied(kind, p, behind, k)
  if kind > LEAKY then return pack('<d', k * unpack_('<d', args, p)) .. sub(args, p + 8, behind - 1) end
  local whole, rest, _, _, den = unpack_('<ddddd', args, p)
  local low = fmod(k, 32768)
  local a = (k - low) / 32768 * rest
  local r = fmod(a, den)
  local b = r * 32768 + low * rest
  local s = fmod(b, den)
  return pack('<dd', whole * k + (a - r) / den * 32768 + (b - s) / den, s) .. sub(args, p + 16, behind - 1)
end

-- group returns the group at byte p at k times its cost, and the position behind it.
local function group(p, k)
  local kind, out, from, count = string.byte(args, p), {}, p, 1
  work = work + STEP_WORK
  local own = kind
  p = p + 3
  if kind == CELL then
    count, p = string.byte(args, p), p + 3
    work = work + STEP_WORK * (count - 1)
    for _ = 1, 3 do p = p + 1 + string.byte(args, p) end
  end
  out[1] = sub(args, from, p - 1)
  for _ = 1, count do
    if kind == CELL then
      own, p = string.byte(args, p), p + 1
      out[#out + 1] = string.char(own)
    end
    local behind = kinds[own][1](p)
    if own < LOG then
      out[#out + 1] = sub(args, p, p + string.byte(args, p))
      p = p + 1 + string.byte(args, p)
    end
    out[#out + 1] = multiplied(own, p, behind, k)
    p = behind
  end
  return table.concat(out), p
end

-- fitting returns how many times the cost of the group at byte p fits, up to most. Logs,
-- gates and slots reply with their room; for other kinds it searches by halves. It is 0
-- if the state cannot be read.
local function fitting(p, most)
  local kind, key = unpack_('<BH', args, p)
  local limit, whole, s, tail = kinds[kind], args, state(key), tails[key]
  local function fits(k)
    args = group(p, k)
    limit[1](4)
    local all, reply = limit[2](s, PEEK, tail)
    args = whole
    return all, reply
  end
  local all, reply = fits(most)
  if all then return most end
  if all == nil then return 0 end
  if kind == LOG or kind == SLOTS then return floor(unpack_('<d', reply, 17) / unpack_('<d', args, p + 3)) end
  local low, high = 0, most
  while high - low > 1 do
    local mid = floor((low + high) / 2)
    if fits(mid) then low = mid else high = mid end
  end
  return low
end

return function(pos, parts)
  local most, start = unpack_('<d', args, pos)
  local p = start
  for _ = 1, parts do
    if most > 1 then most = max(fitting(p, most), 1) end
    p = kinds[string.byte(args, p)][1](p + 3)
  end
  if most <= 1 then return pack('<d', most), start end
  local pieces, from, whole = {}, start, args
  for i = 1, parts do pieces[i], from = group(from, most) end
  args = table.concat(pieces)
  return pack('<d', most), 1, whole, p
end
