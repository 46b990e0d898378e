local fmod, min = math.fmod, math.min
local CHANGE_WORK = 4 -- of one state

-- times returns floor((a * b + c) / m) and the rest. The quotient is exact to 2^53. a is below 2^53, b and m are below
-- 2^45, and c is below 2^51. It takes 7 bits of a at a time, so that no product exceeds 2^53.
local function times(a, b, c, m)
  local scale = 1
  while scale * 128 <= a do scale = scale * 128 end
  local q, r = 0, 0
  while scale >= 1 do
    local low = fmod(a, scale)
    r = r * 128 + (a - low) / scale * b
    if scale == 1 then r = r + c end
    local rest = fmod(r, m)
    q, r, a, scale = q * 128 + (r - rest) / m, rest, low, scale / 128
  end
  return q, r
end

-- less reports whether a/b < c/d. It compares the fractions term by term.
local function less(a, b, c, d)
  while true do
    local x, y = fmod(a, b), fmod(c, d)
    local p, q = (a - x) / b, (c - y) / d
    if p ~= q then return p < q end
    if x == 0 or y == 0 then return y > 0 end
    a, b, c, d = d, y, b, x
  end
end

-- change converts the TAT w and f of a bucket to another rate. It keeps the units used beyond the instant from, rounded
-- up to 1/den us. Under the rate that wrote the TAT a unit takes u/d us, and under the other unit/den us. The last
-- result is whether the other rate is faster. It returns nothing for numbers that no bucket has.
return function(w, f, d, u, den, unit, from)
  if w % 1 ~= 0 or d == 0 or f >= d or not (u >= 1 and u < MOST_AHEAD) or u % 1 ~= 0 then return end
  work = work + CHANGE_WORK
  local faster = less(unit, den, u, d)
  if w < from then
    local more
    f, more = times(f, den, 0, d)
    if more > 0 then f = f + 1 end
    if f == den then w, f = w + 1, 0 end
    return w, f, faster
  end
  local units, rest = times(w - from, d, f, u)
  local part, more = times(rest, unit, 0, u)
  if more > 0 then part = part + 1 end
  w, f = times(min(units, MOST_UNITS), unit, part, den)
  if w >= MOST_AHEAD then w, f = MOST_AHEAD, 0 end
  return from + w, f, faster
end
