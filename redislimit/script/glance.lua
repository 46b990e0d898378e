-- The state of logs and slots is a header and entries, the oldest first.
-- Header: a u8 and five doubles. The u8 is the version of the stored format and the form of the
--         entries. The doubles are the expiry of the key; the instant of the last write, or an
--         earlier one if the newest entry has it; the instant that entries count from; the total of
--         the units that have left; and a number of the kind's own.
-- Entry:  the us since the header's instant; the total of all units up to and including it; and
--         EXTRA, what the kind keeps with it.
-- Totals wrap, and only their differences are used. The forms SHORT and LONG omit them: each
-- entry then holds one unit.
local HEAD = 41
local SHORT, LONG, NARROW, MIDDLE, WIDE = FORM + 1, FORM + 2, FORM + 3, FORM + 4, FORM + 5
local form, each, AT, TOTAL, BOTH, ENTRY, width, size, wrap, reach -- width of an instant, size of an entry
local function use(f)
  form, each = f, f <= LONG
  if f == SHORT then
    AT, BOTH, width, size, wrap, reach = '<I4', '<I4', 4, 4 + EXTRA_SIZE, 2^32, 2^32
  elseif f == LONG then
    AT, BOTH, width, size, wrap, reach = '<I6', '<I6', 6, 6 + EXTRA_SIZE, 2^32, 2^48
  elseif f == NARROW then
    AT, TOTAL, BOTH, width, size, wrap, reach = '<I4', '<I2', '<I4I2', 4, 6 + EXTRA_SIZE, 2^16, 2^32
  elseif f == MIDDLE then
    AT, TOTAL, BOTH, width, size, wrap, reach = '<I6', '<I4', '<I6I4', 6, 10 + EXTRA_SIZE, 2^32, 2^48
  else
    AT, TOTAL, BOTH, width, size, wrap, reach = '<d', '<d', '<dd', 8, 16 + EXTRA_SIZE, 2^55, inf
  end
  ENTRY = BOTH .. EXTRA
end

-- freshest returns the form in which n units begin a log or slots with room for most units, each
-- of which counts for long us.
local function freshest(n, most, long)
  local small = long <= 2^31 and most <= MOST_SMALL -- a long one should not reach the end of its instants
  if n == 1 or n == -1 then return small and SHORT or LONG end
  return small and NARROW or MIDDLE
end

-- written packs an entry.
local function written(instant, total, extra)
  if each then return pack(ENTRY, instant, extra) end
  return pack(ENTRY, instant, total % wrap, extra)
end

-- after returns the first entry later than an instant, among those of s behind byte from, which
-- count from the instant place. It lies above low, whose instant is a, and at or below high,
-- whose instant is b. The search first interpolates, as if entries came evenly, and then bisects.
local function after(instant, s, from, place, low, high, a, b)
  local format, each, guesses = AT, size, 2
  from = from + 1
  while high - low > 1 do
    local step = (high - low) / 2
    if guesses > 0 then
      step, guesses = (high - low) * ((instant - a) / (b - a)), guesses - 1
      if not (step < high - low) then step = (high - low) / 2 end -- entries of a damaged value
      if step < 1 then step = 1 end
    end
    local mid = low + (step - step % 1) -- whole: low + step may not hold what step does
    local x = place + unpack_(format, s, from + each * mid)
    if x > instant then high, b = mid, x else low, a = mid, x end
  end
  return high
end

-- beyond returns the first entry of s behind byte from with which more than count units have come
-- since the i-th entry. left is the total before the i-th entry, and sum the total before the
-- entry at length. It returns length if there are no more than count units. The search first
-- interpolates, as if all entries had the same number of units, then looks beside that, and then
-- bisects.
local function beyond(s, from, i, length, left, sum, count)
  local all = (sum - left) % wrap
  if all <= count then return length end
  if each then return i + count end
  local low, high, mid, near = i, length - 1, i + floor(count * (length - i) / all), true
  if mid > high then mid = high end
  while low < high do
    if (unpack_(TOTAL, s, from + 1 + size * mid + width) - left) % wrap > count then
      high, mid = mid, mid - 1
    else
      low, mid = mid + 1, mid + 1
    end
    if not near then mid = floor((low + high) / 2) end
    near = false
  end
  return low
end

-- The parameters of the part: the cost; the limit, and how long a unit counts; the header's own
-- number in a state of these parameters; the extra of an entry, and the form of a new state; for
-- logs also the gap between entries and whether denied attempts count. A kind's first function
-- sets them.
local n, limit, period, mark, extra, fresh
local gap, denied = 0, 0

-- glance makes a simple take, in two cases. Without a state, it writes a new one. With a state of
-- the same mark, it appends an entry if the cost fits, or rewrites the state if too many of its
-- entries have left or its key has to live longer. It returns the results of a kind's second
-- function, or nothing if the take is not simple. Most decisions are simple, and glance costs
-- half as much as the full path. Lines that end with WHOLE are for a value that was read, those that
-- end with PAGED for one of which it reads single entries.
local function glance(s)
  local need, edge = now + period, now - period
  if not s then
    if n > limit then return end
    if form ~= fresh then use(fresh) end
    local room = gap > 0 and 0 or limit - n
    return true, pack('<dd', room, period), pack('<Bddddd', fresh, need, now, now, 0, mark) .. written(0, n, extra), need
  end
  if #s <= HEAD then return end
  local f, till, last, place, left, own = unpack_('<Bddddd', s)
  if f ~= form then
    if f < SHORT or f >= WIDE then return end
    use(f)
  end
  local length, dropped, gone = (#s - HEAD) / size, left, 0
  if length % 1 > 0 or own ~= mark or f == WIDE or not (place <= now and left % 1 == 0) then return end
  if each and n > 1 then return end -- WHOLE
  local newest, sum = unpack_(BOTH, s, #s - size + 1)
  if each then sum = left + length end
  local oldest = place + unpack_(AT, s, HEAD + 1)
  newest = place + newest
  if last > now or newest >= now or edge >= newest then return end
  if newest + gap > now then return end -- WHOLE
  if denied > 0 then return end -- PAGED
  if edge >= oldest then
    gone = after(edge, s, HEAD, place, 0, length - 1, oldest, newest)
    left = each and left + gone or unpack_(TOTAL, s, HEAD + 1 + size * (gone - 1) + width)
  end
  local room, ahead = limit - (sum - left) % wrap - n, 0
  local early = newest + gap - now -- PAGED
  if early > 0 and room >= 0 then return false, pack('<dddd', early, early, 0, newest - edge) end -- PAGED
  if each and n > 1 and room >= 0 then return end -- PAGED
  if room < 0 then
    if n > limit then return end
    if gap > 0 then return end -- WHOLE
    local more = denied > 0 and n - room or -room -- units that have to leave, or before the next take if the refusal is written
    local i = beyond(s, HEAD, gone, length, left, sum, more - 1)
    ahead = i < length and place + unpack_(AT, s, HEAD + 1 + size * i) - edge or period
    if early > 0 then ahead, room = max(ahead, early), -n end -- PAGED
    if denied == 0 then return false, pack('<dddd', ahead, ahead, max(room + n, 0), newest - edge) end
  end
  if now - place >= reach or (sum - dropped) % wrap + n >= wrap / 2 then return end
  local anew = need > till or till == inf and need < inf or 3 * gone > length
  if anew or room < -limit / 3 then return end -- PAGED
  if room < -limit / 3 then -- too many units beyond the limit
    gone, left, anew = beyond(s, HEAD, gone, length, left, sum, -room), (left - room) % wrap, true
  end
  local fits, entry, new = room >= 0, written(now - place, sum + n, extra), nil
  if anew then
    till = lasts(till, need)
    new, entry = pack('<Bddddd', f, till, now, place, left, mark) .. sub(s, HEAD + 1 + size * gone) .. entry, nil
  end
  if gap > 0 or not fits then room = 0 end
  return fits, fits and pack('<dd', room, period) or pack('<dddd', ahead, ahead, room, period), new, new and till, entry
end

-- decide is a kind's second function. It tries glance, and otherwise the function that careful
-- creates on first use. Of a long value that was not read, glance reads only some entries.
local careful, decision, brief, paged
local decide
function decide(s, op, t)
  if type(s) == 'table' then
    if op == TAKE and n > 0 and not t then
      brief = brief or paged()
      local fits, reply, new, moved, added = brief(s)
      if reply then return fits, reply, new, moved, added end
    end
    s.text = s.text or call('GET', s.name)
    return decide(s.text, op, t)
  end
  if op == TAKE and n > 0 and not t then
    local fits, reply, new, moved, added = glance(s)
    if reply then return fits, reply, new, moved, added end
  end
  decision = decision or careful()
  return decision(s, op, t)
end
