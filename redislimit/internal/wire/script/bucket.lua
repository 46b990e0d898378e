-- TokenBucket (t) and LeakyBucket (l).
-- State:      the instant TAT as whole us and a rest in 1/den us; den and unit of the limit that wrote it, under which one unit
--             takes unit/den us; the instant at which it was last converted to another rate, or if it was booked later, half a us
--             more than the newest booked instant; and for a leaky bucket the newest promised release, in whole us.
-- Parameters: the times of the cost and of the burst, each as whole us and a rest in 1/den us; den; unit; the sign of the cost;
--             by how much the release of a unit of a leaky bucket is earlier than TAT after it, likewise, or for a token bucket
--             -1 and 0; and to undo a take of a leaky bucket, with sign 2, the TAT that the take left, and the newest release
--             before it. For a withdraw also the TAT and the last instant of the state after the booking, and of the state before
--             it, with the den and the unit of the limit that wrote that one.
if buckets > 0 then
  -- rarely makes the functions that few decisions need.
  local function rarely()
    -- times returns floor((a * b + c) / m) and the rest. The quotient is exact to 2^53. a is below 2^53, b and m are below
    -- 2^45, and c is below 2^51. It takes 7 bits of a at a time, so that no product exceeds 2^53.
    local function times(a, b, c, m)
      local scale, q, r = 1, 0, 0
      while scale * 128 <= a do scale = scale * 128 end
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

    -- The TAT w and f keeps the units used beyond the instant from, rounded up to 1/den us. Under the rate that wrote it a unit
    -- takes u/d us, and under the other unit/den us. The last result is whether the other rate is faster. There is none for
    -- numbers that no bucket has.
    local function convert(w, f, d, u, den, unit, from)
      local MOST_UNITS, MOST_AHEAD, CHANGE_WORK = 2^53, 2^51, 4
      if w % 1 ~= 0 or d == 0 or f >= d or not (u >= 1 and u < MOST_AHEAD) or u % 1 ~= 0 then return end
      work = work + CHANGE_WORK
      local faster, more = less(unit, den, u, d), nil
      if w < from then
        f, more = times(f, den, 0, d)
        if more > 0 then f = f + 1 end
        if f == den then w, f = w + 1, 0 end
        return w, f, faster
      end
      local units, rest = times(w - from, d, f, u)
      local part, left = times(rest, unit, 0, u)
      if left > 0 then part = part + 1 end
      w, f = times(min(units, MOST_UNITS), unit, part, den)
      if w >= MOST_AHEAD then w, f = MOST_AHEAD, 0 end
      return from + w, f, faster
    end

    -- back gives units back. told is the newest promised release or booked instant.
    local function back(p, op, w, f, d, u, at, told)
      local cw, cf, _, _, den, unit, sign, dw = unpack(p)
      local leaky, undone = dw >= 0, op == 'undo' and sign == 1 or op == 'withdraw' and (special.past or 0) > 0 -- what flowed back stays
      if op == 'withdraw' and special.taken > now then
        local tookW, tookF, tookAt, hadW, hadF, hadAt, hadD, hadU = unpack(p, 10)
        if w == tookW and f == tookF and (leaky and told or at) == tookAt then
          if leaky then told = hadAt else at = hadAt end
          w, f, d, u = hadW, hadF, hadD, hadU
          if w < now then w, f = now, 0 end
          return true, max(f > 0 and w + 1 or w, leaky and told or 0), w, f, d, u, at, told
        end
      end
      if sign == 0 or leaky and op == 'withdraw' and (told > now or undone) then return true end
      if sign == 2 then
        if w ~= p[10] or f ~= p[11] then return true end
        told = p[12]
      end
      local less = undone and cw - special.past or cw -- by how much TAT moves back, besides cf
      if undone and (less < 0 or at > special.taken + (op == 'withdraw' and 0.5 or 0)) then return true end
      w, f = w - less, f - cf
      if f < 0 then w, f = w - 1, f + den end
      local least = leaky and now or max(now, told)
      if w < least then w, f = least, 0 end
      return true, max(f > 0 and w + 1 or w, leaky and told or 0), w, f, den, unit, at, told
    end

    return convert, back
  end
  local convert, back

  local function bucket(p, op, w, f, d, u, at, told)
    local MOST_UNITS, MOST_AHEAD = 2^53, 2^51
    local cw, cf, bw, bf, den, unit, sign, dw, df = p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9] -- faster than unpack
    local leaky, faster = dw >= 0, nil
    if op == 'undo' and not special.past and sign == 1 then op, sign = 'record', -1 end -- its caller gets all units back
    if not leaky then told = at > now and fmod(at, 1) > 0 and at - 0.5 or -inf elseif not (told < MOST_UNITS) then return end
    if w < now then
      if op == 'undo' then return true end
      w, f = now, 0
    elseif not (w < MOST_UNITS) then -- no bucket has it
      return
    elseif d ~= den or u ~= unit then
      if op == 'undo' or sign == 0 then return true end
      if not convert then convert, back = rarely() end
      w, f, faster = convert(w, f, d, u, den, unit, max(now, told))
      if not w then return end
      if leaky or told <= now then at = now end
    end
    if sign ~= 1 or op == 'undo' then
      if not back then convert, back = rarely() end
      return back(p, op, w, f, d, u, at, told)
    end
    local tw, tf = w + cw, f + cf
    if tf >= den then tw, tf = tw + 1, tf - den end
    local ahead = tw - now
    local fits = (ahead < bw or ahead == bw and tf <= bf) and (leaky or told <= now)
    local late = faster and op == 'peek' and special and special.refused
    if op == 'when' or op == 'book' or late then
      local room = tw - bw + (tf > bf and 1 or 0)
      local own = leaky and tw - dw + (tf > df and 1 or 0) or max(room, told)
      if op == 'when' then
        if leaky then special.vacant = max(special.vacant, room) end
        special.due = max(special.due, own)
        return fits
      end
      late, fits = late and own > now, not late
      if not leaky and fits then
        if own < special.due and w < special.due then tw, tf = special.due + cw, cf end
        if special.due > now then at = special.due + 0.5 end
      end
    end
    if op == 'peek' and not late or not fits and op == 'take' and not faster then return fits end
    if fits or op == 'record' then
      if ahead > MOST_AHEAD then tw, tf = max(w, now + MOST_AHEAD), 0 end
      w, f = tw, tf
    end
    local need = f > 0 and w + 1 or w
    if leaky then
      if fits and op ~= 'record' then told = max(told, w - dw + (f > df and 1 or 0)) end
      if told > need then need = told end
    end
    return fits, need, w, f, den, unit, at, told
  end
  limits.t, limits.l = bucket, bucket
end
