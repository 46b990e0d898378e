-- bucket decides TokenBucket and LeakyBucket. Lines that end with LEAKY are only in the functions of the latter, and
-- lines that end with TOKEN only in those of the former.
-- State:      the instant TAT as whole us and a rest in 1/den us; den and unit of the limit that wrote it, under which
--             one unit takes unit/den us; the instant at which it was last converted to another rate, or if it was booked
--             later, half a us more than the newest booked instant; and for a leaky bucket the newest promised
--             release, in whole us.
-- Parameters: the times of the cost and of the burst, each as whole us and a rest in 1/den us; den; unit; the sign
--             of the cost; for a leaky bucket also by how much the release of a unit is earlier than TAT after it,
--             likewise; and to undo a take of a leaky bucket, with sign 2, the TAT that the take left, and the newest
--             release before it. For a WITHDRAW also the TAT and the last instant of the state after the booking, and
--             of the state before it, with the den and the unit of the limit that wrote that one.
local head, cw, cf, bw, bf, den, unit, sign
local dw, df, before -- LEAKY
local leftW, leftF -- LEAKY
local booked -- where the parameters of a WITHDRAW are: each local that functions share costs every call that creates them
local function read(pos)
  head, cw, cf, bw, bf, den, unit, sign, pos = unpack_('<Bc0ddddddd', args, pos)
  dw, df, pos = unpack_('<dd', args, pos) -- LEAKY
  if sign == 2 then leftW, leftF, before, pos = unpack_('<ddd', args, pos) end -- LEAKY
  if special and special.given then booked, pos = pos, pos + 64 end
  return pos
end
LIMIT
  local faster
  if not (told < MOST_UNITS) then w = inf end -- LEAKY
  local told = at > now and fmod(at, 1) > 0 and at - 0.5 or -inf -- TOKEN
  if w < now then
    if op == UNDO then break end
    w, f = now, 0
  elseif not (w < MOST_UNITS) then -- no bucket has it
    fits = nil
    break
  elseif d ~= den or u ~= unit then
    if op == UNDO or sign == 0 then break end
    local from = now
    if told > now then from = told end
    convert = convert or rarely(CHANGE)
    w, f, faster = convert(w, f, d, u, den, unit, from)
    if not w then
      fits = nil
      break
    end
    at = now -- LEAKY
    if told <= now then at = now end -- TOKEN
  end
  if sign == 1 and op ~= UNDO then
    local tw, tf = w + cw, f + cf
    if tf >= den then tw, tf = tw + 1, tf - den end
    local ahead = tw - now
    fits = ahead < bw or ahead == bw and tf <= bf
    if told > now then fits = false end -- TOKEN
    if op >= WHEN then
      local room, own = tw - bw + (tf > bf and 1 or 0), nil
      own = tw - dw + (tf > df and 1 or 0) -- LEAKY
      own = max(room, told) -- TOKEN
      if op == WHEN then
        special.vacant = max(special.vacant, room) -- LEAKY
        special.due = max(special.due, own)
        break
      end
      fits = true
      if own < special.due and w < special.due then tw, tf = special.due + cw, cf end -- TOKEN
      if special.due > now then at = special.due + 0.5 end -- TOKEN
    end
    if op == PEEK or not fits and op == TAKE and not faster then break end
    if fits or op == RECORD then
      if ahead > MOST_AHEAD then tw, tf = max(w, now + MOST_AHEAD), 0 end
      w, f = tw, tf
    end
    local release = w - dw + (f > df and 1 or 0) -- LEAKY
    if fits and op ~= RECORD then told = max(told, release) end -- LEAKY
  else
    if op == WITHDRAW and special.taken > now then
      local tookW, tookF, tookAt, hadW, hadF, hadAt, hadD, hadU = unpack_('<dddddddd', args, booked)
      if w == tookW and f == tookF and LAST == tookAt then
        w, f, LAST, d, u = hadW, hadF, hadAt, hadD, hadU
        if w < now then w, f = now, 0 end
        need = f > 0 and w + 1 or w
        if told > need then need = told end -- LEAKY
        break
      end
    end
    if op == WITHDRAW and (told > now or special.past and special.past > 0) then break end -- LEAKY
    local back = cw -- by how much TAT moves back, besides cf
    if sign == 0 or sign == 2 and (w ~= leftW or f ~= leftF) then break end -- LEAKY
    if sign == 2 then told = before end -- LEAKY
    if sign == 0 then break end
    if sign == 1 then
      back = cw - special.past
      if back < 0 or at > special.taken then break end
    end
    if op == WITHDRAW and special.past and special.past > 0 then -- TOKEN
      back = cw - special.past -- TOKEN
      if back < 0 or at > special.taken + 0.5 then break end -- TOKEN
    end -- TOKEN
    w, f = w - back, f - cf
    if f < 0 then w, f = w - 1, f + den end
    local floor = told > now and told or now -- TOKEN
    if w < floor then w, f = floor, 0 end -- TOKEN
    if w < now then w, f = now, 0 end -- LEAKY
  end
  d, u, need = den, unit, f > 0 and w + 1 or w
  if told > need then need = told end -- LEAKY
