-- The full path of logs and slots, for what glance leaves.

-- The current state. Its functions are created once, not once per state. The text has the entries
-- from byte head + 1 on; those before the entry first have left. The tail follows the text and
-- holds entries at the newest instant.
local text, head, tail, first, length
local till, last, base, dropped, own
local long -- how long an entry counts, in us
local newest, sum -- the instant of the newest entry, and the total with it
local latest, behind -- the same without the tail

local function at(i) return base + unpack_(AT, text, head + 1 + size * i) end
local function total(i) -- before the i-th entry
  if i == first then return dropped end
  if i == length then return behind end
  if each then return dropped + i - first end
  return (unpack_(TOTAL, text, head + 1 + size * (i - 1) + width))
end
local function units(i) return (sum - total(i)) % wrap end -- from the i-th entry on

-- look measures the state. e is the instant of the decision; a clock that runs back does not move
-- it before what was written. gone is the number of entries of the text that no longer count, and
-- held the units of the others.
local e, gone, held
local function look()
  local place, left, instant = base, dropped, now
  local at, all, oldest = -inf, left, inf
  if first < length then
    at, all = unpack_(BOTH, text, head + 1 + size * (length - 1))
    at = place + at
    if each then all = left + length - first end
    oldest = place + unpack_(AT, text, head + 1 + size * first)
  end
  latest, behind = at, all
  if tail then
    at, all = unpack_(BOTH, tail, #tail - size + 1)
    at = place + at
    if each then all = behind + #tail / size end
  end
  newest, sum = at, all
  if last > instant then instant = last end
  if at > instant and long > 0 then instant = at end
  local edge, i = instant - long, first
  if edge >= latest then
    i, left = length, behind
  elseif edge >= oldest then
    i = after(edge, text, head, base, first, length - 1, oldest, latest)
    left = total(i)
  end
  e, gone, held = instant, i, (all - left) % wrap
end

-- open reads a state and measures it. It returns false if the state is unreadable. Entries count
-- for l us, or otherwise for the header's own number.
local function open(s, t, l)
  tail, first, long = t, 0, l or mark
  if not s then
    if form ~= fresh then use(fresh) end
    text, head, length = '', 0, 0
    till, last, base, dropped, own = 0, -inf, 0, 0, mark
    newest, sum, latest, behind, e, gone, held = -inf, 0, -inf, 0, now, 0, 0
    return true
  end
  if #s < HEAD then return false end
  text, head = s, HEAD
  local f
  f, till, last, base, dropped, own = unpack_('<Bddddd', s)
  long = l or own
  if f ~= form then
    if f < SHORT or f > WIDE then return false end
    use(f)
  end
  length = (#s - HEAD) / size
  if length % 1 > 0 or not (last < MOST_UNITS and base > -MOST_UNITS and base < MOST_UNITS and dropped % 1 == 0 and own >= 0 and (own % 1 == 0 or own == inf)) then
    return false
  end
  look()
  return true
end

-- whole returns the state without its tail, and its expiry. The state matters until need.
local function whole(need)
  till = lasts(till, need)
  work = work + (length - first) * size / 256
  local entries = text
  if head > 0 or first > 0 or #text > size * length then entries = sub(text, head + 1 + size * first, head + size * length) end
  return pack('<Bddddd', form, till, last, base, dropped, own) .. entries, till
end

-- leaving returns the instant of the entry with which count units have left, counted from the
-- i-th entry on.
local function leaving(i, count)
  i = beyond(text, head, i, length, total(i), behind, count - 1)
  return i == length and newest or at(i)
end

-- drop removes the entries before the i-th.
local function drop(i)
  if i > first then
    dropped = total(i)
    first = i
  end
end

-- fold moves the tail into the text.
local function fold()
  if tail then
    text, length, tail = text .. tail, length + #tail / size, nil
    latest, behind = newest, sum
  end
end

-- repacked returns the entries from the i-th to before the j-th, with by added to their totals.
local function repacked(i, j, by)
  local entries = {}
  work = work + 2 * (j - i)
  for k = i, j - 1 do
    local instant, sum, extra = unpack_(ENTRY, text, head + 1 + size * k)
    entries[k - i + 1] = pack(ENTRY, instant, (sum + by) % wrap, extra)
  end
  return table.concat(entries)
end
-- without takes n units out of the i-th entry, which has at least n. Either the totals before it
-- grow or the newer totals shrink, whichever are fewer.
local function without(i, n)
  work = work + #text / 256
  local rest = (total(i + 1) - total(i)) % wrap > n and i or i + 1
  if each then
    text = sub(text, head + 1 + size * first, head + size * i) .. sub(text, head + 1 + size * rest, head + size * length)
  elseif 2 * i < first + length then
    text = repacked(first, i, n) .. sub(text, head + 1 + size * rest, head + size * length)
    dropped = (dropped + n) % wrap
  else
    text = sub(text, head + 1 + size * first, head + size * i) .. repacked(rest, length, -n)
  end
  head, first, length = 0, 0, #text / size
  look()
end

-- spread lists the entries: their instants, units and extras.
local function spread()
  fold()
  work = work + length - first
  local instants, counts, extras, before = {}, {}, {}, dropped
  for i = first, length - 1 do
    local instant, sum, extra = unpack_(ENTRY, text, head + 1 + size * i)
    if each then sum, extra = before + 1, sum end
    local k = i - first + 1
    instants[k], counts[k], extras[k] = base + instant, (sum - before) % wrap, extra
    before = sum
  end
  return instants, counts, extras
end

-- gather makes the text from such lists, without empty entries. It uses the form f, or a larger
-- one if more further units at the instant would not fit otherwise.
local function gather(instants, counts, extras, f, from, more, instant)
  local all, most = 0, more
  work = work + #instants
  for k = 1, #instants do all, most = all + counts[k], max(most, counts[k]) end
  use(f)
  while instant - from >= reach or all + more >= wrap / 2 or each and most > 1 do use(form + 1) end
  local entries, sum = {}, 0
  for k = 1, #instants do
    if not each and EXTRA_SIZE == 0 and instants[k] == instants[k + 1] then -- one entry of an instant: see undo
      counts[k], counts[k + 1] = 0, counts[k] + counts[k + 1]
    end
    if counts[k] > 0 then
      sum = sum + counts[k]
      entries[#entries + 1] = written(instants[k] - from, sum, extras[k])
    end
  end
  text, head, first, length = table.concat(entries), 0, 0, #entries
  base, dropped = from, 0
  look()
end

-- exact reports whether a total with count more units is exact. In the form WIDE totals do not wrap.
local function exact(count) return form < WIDE or count <= MOST_UNITS - sum end

-- roomy reports whether the state can take count more units as a further entry: the key lives
-- long enough, the numbers are not too large, and not too much of the text has left.
local function roomy(count)
  local need = e + long
  return newest > -inf and need <= till and (till < inf or need == inf) and 3 * gone <= length and
    e - base < reach and (sum - dropped) % wrap + count < wrap / 2 and exact(count)
end

-- loosen makes room for an entry of more than one unit in a form that holds one unit per entry. A long log keeps that
-- form unless it must not, because each of its entries would have to be written anew.
local function loosen(count, must)
  if each and count > 1 and (must or EXTRA_SIZE > 0 or length - first <= MOST_LOOSENED) then
    local instants, counts, extras = spread()
    gather(instants, counts, extras, form, instants[1] or e, count, e)
    return true
  end
end

-- anew returns a rewritten state without its tail, with room for count more units.
local function anew(count)
  if first == length and not tail then
    base, dropped, sum = e, 0, 0
    while count >= wrap / 2 do use(form + 1) end
  elseif e - base >= reach or (sum - dropped) % wrap + count >= wrap / 2 or not exact(count) then
    local instants, counts, extras = spread()
    gather(instants, counts, extras, form, instants[1], count, e)
  end
  last = e
  return whole(e + long)
end
