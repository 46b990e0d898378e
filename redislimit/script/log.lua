-- log is SlidingLog and RateGate. State: the instant of the last write (or an
-- earlier one, if that is the newest entry's) and the one that entries count
-- from, two doubles; u32, the total of the units that have left; then entries of 10 bytes, oldest first: u48, the us since that instant,
-- and u32, the total of all units up to and with this entry. Strings are what
-- costs time here, about 1 us for each KB that is read, cut or joined. Totals
-- wrap at 2^32, and only their differences are used, which are at most 3 * 2^20.
-- Parameters: cost, limit, period, gap, whether denied attempts count, and
-- whether it is a gate.
local WRAP, MOST_SPAN = 2^32, 2^48
-- The log at hand. Its functions are made once, not once a log.
local log, last, base, dropped, first, length
local limit, period, gap, gate
local e, newest, sum, gone, held -- as look found them

local function at(i) return base + unpack_('<I6', log, 21 + 10 * i) end
local function total(i) -- before the i-th entry
  if i == first then return dropped end
  return (unpack_('<I4', log, 17 + 10 * i))
end
local function since(i) return (total(length) - total(i)) % WRAP end

-- before is the first entry that still counts at an instant; the oldest is
-- the likely answer.
local function before(instant)
  local edge, low, high = instant - period, first, length
  if low < high and at(low) > edge then return low end
  while low < high do
    local mid = floor((low + high) / 2)
    if at(mid) > edge then high = mid else low = mid + 1 end
  end
  return low
end
-- holding is the entry with which, counted from the i-th on, there are so many
-- units.
local function holding(i, units)
  local from, low, high = total(i), i, length
  if low < high and (total(low + 1) - from) % WRAP >= units then return low end
  while low < high do
    local mid = floor((low + high) / 2)
    if (total(mid + 1) - from) % WRAP >= units then high = mid else low = mid + 1 end
  end
  return low
end

local function look()
  if first == length then
    e = now > last and now or last
    newest, sum, gone, held = -inf, dropped, first, 0
  else
    newest, sum = unpack_('<I6I4', log, 11 + 10 * length)
    newest = newest + base
    if newest > last then last = newest end
    e = now > last and now or last
    gone = before(e)
    held = (sum - total(gone)) % WRAP
  end
end
local function wait(n)
  if n > limit then return inf end
  if n <= 0 or first == length then return 0 end
  local w, over = 0, held + n - limit
  if e - newest < gap then w = newest - now + gap end
  if over > 0 then w = max(w, at(holding(gone, over)) - now + period) end
  if gate > 0 then w = max(w, newest - now) end
  return w
end
local function describe(ahead, after)
  local room, reset = max(limit - held, 0), 0
  if e - newest < gap or gate > 0 and newest > now then room = 0 end
  if held > 0 then reset = newest - now + period end
  return pack('<dddd', ahead, after, room, reset), reset
end

local function drop(to)
  if to > first then
    dropped = total(to)
    first = to
  end
end
local function keepNewest(most)
  local over = since(first) - most
  if over <= 0 then return end
  local from = total(first)
  local to = holding(first, over + 1)
  dropped = (from + over) % WRAP
  first = to
end
-- rebuild makes what is left the log.
local function rebuild()
  log = pack('<ddI4', last, base, dropped) .. sub(log, 21 + 10 * first)
  first, length = 0, (#log - 20) / 10
end
-- rebase counts from the oldest entry, when the newest is 8 years ahead.
local function rebase()
  local moved, from = {}, at(first)
  for i = first, length - 1 do moved[#moved + 1] = pack('<I6I4', at(i) - from, total(i + 1)) end
  log, base = sub(log, 1, 20 + 10 * first) .. table.concat(moved), from
end
-- append is rebuild with n more units at last, which is not behind the newest.
local function append(n)
  local stop = -1
  if first == length then
    base = last
  elseif newest == last then
    stop = 10 + 10 * length
  end
  if last - base >= MOST_SPAN then rebase() end
  log = pack('<ddI4', last, base, dropped) .. sub(log, 21 + 10 * first, stop) .. pack('<I6I4', last - base, (sum + n) % WRAP)
  first, length = 0, (#log - 20) / 10
end
-- cut lets n units leave from the i-th entry on, and keeps the older ones.
local function cut(i, n)
  local kept, previous, left = {}, total(i), 0
  for j = i, length - 1 do
    local sum = total(j + 1)
    local size = (sum - previous) % WRAP
    previous = sum
    local out = min(size, n - left)
    left = left + out
    if size > out then kept[#kept + 1] = pack('<I6I4', at(j) - base, (sum - left) % WRAP) end
  end
  log = sub(log, 1, 20 + 10 * i) .. table.concat(kept)
  length = (#log - 20) / 10
end
local function take(n)
  local most = limit
  if gate > 0 then
    most = limit * 3
    drop(before(now))
  else
    drop(gone)
  end
  n = min(n, most)
  keepNewest(most - n)
  last = e
  if first == length then sum = dropped end
  append(n)
end
local function give(n)
  if gate > 0 then
    cut(gone, n)
    last = -inf
    if length > 0 then last = at(length - 1) end
  else
    last = e
    drop(gone)
    keepNewest(held - min(n, held))
  end
  rebuild()
end

return function(pos, s, op)
  local n, denied
  n, limit, period, gap, denied, gate, pos = unpack_('<dddddd', args, pos)
  log, last, base, dropped, first, length = '', -inf, 0, 0, 0, 0
  if s then
    if #s < 20 or #s % 10 ~= 0 then return pos end
    log, length = s, (#s - 20) / 10
    last, base, dropped = unpack_('<ddI4', s)
  end
  look()
  local ahead = wait(n)
  local fits = ahead == 0
  if op == TAKE and fits and n > 0 then
    -- The common case: nothing has to be asked again, and one more entry is all
    -- that has to be written, unless half of the log does not count any more. A
    -- gate forgets at once, for a clock that runs back after units were given.
    local tail
    if length == 0 or e == newest or e - base >= MOST_SPAN or gone > (gate > 0 and 0 or length / 2) then
      drop(gone)
      last = e
      append(n)
    else
      tail = pack('<I6I4', e - base, (sum + n) % WRAP)
    end
    newest, held = e, held + n
    local reply, reset = describe(0, 0)
    return pos, true, reply, tail or log, reset, tail ~= nil
  end
  if n > 0 and (op == RECORD or op == TAKE and denied > 0 and n <= limit) then
    take(n)
  elseif n < 0 and op == RECORD and length > 0 then
    give(-n)
  elseif n > 0 and op == UNDO and length > 0 then
    cut(before(taken + period - 1), n) -- from the first entry at or after it
    rebuild()
  else
    return pos, fits, (describe(ahead, ahead))
  end
  look()
  local reply, reset = describe(ahead, wait(n))
  return pos, fits, reply, log, reset
end
