-- log decides SlidingLog and RateGate.
-- State:      as in glance.lua. An entry is an instant at which units were taken. The header's own
--             number is 0, or if the last writer counts denied attempts, how many of the newest units
--             the state has: the largest limit that wrote an entry that still counts.
-- Parameters: cost, limit, period and gap in us, 1 if denied attempts count, 1 for a gate.
-- Some entries that no longer count stay for a while, and with denied attempts also some units beyond
-- the own number. No answer depends on them, and reading them costs less than cutting them off each
-- time. Every entry that counts stays otherwise, because a later limit may be larger.
local EXTRA, EXTRA_SIZE = '', 0
GLANCE
local gate
local function read(pos)
  n, limit, period, gap, denied, gate, pos = unpack_('<dddddd', args, pos)
  mark, fresh = denied > 0 and limit or 0, freshest(n, limit, period)
  return pos
end

function paged()
PAGED_GLANCE
return glance
end

function careful()
ENTRIES
local function wait()
  if n > limit then return inf end
  if n <= 0 or newest == -inf then return 0 end
  local w, over = 0, held - limit + n
  if e - newest < gap then w = newest - now + gap end
  if over > 0 then w = max(w, leaving(gone, over) - now + period) end
  if gate > 0 then w = max(w, newest - now) end
  return w
end
local function describe(op, ahead, later)
  local room, reset = limit - held, 0
  if room < 0 or e - newest < gap or gate > 0 and newest > now then room = 0 end
  if held > 0 then reset = newest - now + period end
  if op == TAKE and ahead == 0 then return pack('<dd', room, reset), now + reset end
  return pack('<dddd', ahead, later, room, reset), now + reset
end

-- keep removes the oldest units until at most most units are left. The caller has set last,
-- because the newest entry may be removed too.
local function keep(most)
  local over = units(first) - most
  if over > 0 then
    first, dropped = beyond(text, head, first, length, dropped, behind, over), (dropped + over) % wrap
    look()
  end
end

-- entries returns the number of entries that count.
local function entries() return length - gone + (tail and #tail / size or 0) end

-- full reports whether a record leaves more entries than a state may have. Refusals that count have a
-- bound of their own.
local function full()
  if denied > 0 then return false end
  if each and n > 1 and length - first > MOST_LOOSENED then return entries() + n > limit + MOST_EXTRA end
  return (each or newest ~= e) and entries() >= limit + MOST_EXTRA
end

-- kept returns the new own number. If denied attempts did not count before, the units stay.
local function kept()
  if denied == 0 then return 0 end
  if held == 0 then return limit end
  return max(limit, own > 0 and own or min(held, limit + MOST_KEPT))
end

-- passed returns the number of entries that can go. A booking ahead may be withdrawn, so a gate keeps those that count
-- now.
local function passed()
  if gate == 0 or e <= now then return gone end
  local edge = now - period
  if first == length or at(first) > edge then return first end
  if latest <= edge then return length end
  return min(gone, after(edge, text, head, base, first, length - 1, at(first), latest))
end

-- note returns the entry of the cost, or of the part of it that the state can hold. If the state
-- cannot take a further entry, or fold has moved entries of the same call into the text, it also
-- returns a new state to append it to: a tail has one instant only.
local function note(folded)
  local most, new, moved = kept(), nil, nil
  local count = min(n, most > 0 and most or MOST_UNITS - held)
  local tight = loosen(count, most == 0 and entries() + count > limit + MOST_EXTRA)
  tight = tight or folded or own ~= most or most > 0 and held + count > most * 4 / 3 or not roomy(count)
  local stale = newest == e and not each and not tail -- the last entry is replaced by a larger one
  if tight or stale then
    last, own = e, most
    drop(passed())
    if most > 0 then keep(most - count) end
    if stale and first < length then
      length = length - 1
      tail = sub(text, head + 1 + size * length, head + size * (length + 1))
    end
    if first == length and not tail then use(fresh) end
    new, moved = anew(count)
  end
  local entry = written(e - base, sum + count)
  if each then entry = (tail or '') .. string.rep(entry, count) end
  return entry, new, moved
end

-- cutEach removes n entries from the i-th on, in a form that holds one unit per entry.
local function cutEach(i, n)
  text = sub(text, head + 1 + size * first, head + size * i) .. sub(text, head + 1 + size * min(i + n, length), head + size * length)
  head, first, length = 0, 0, #text / size
  look()
end

-- undo removes up to n units that were taken at the instant taken. It returns false if there are none, or if too many
-- entries would have to be moved; the units then stay.
local function undo(n)
  fold()
  if first == length or special.taken > latest or special.taken < at(first) then return false end
  local i, stop = first, length
  if at(first) < special.taken then i = after(special.taken - 1, text, head, base, first, length - 1, at(first), latest) end
  if latest > special.taken then stop = after(special.taken, text, head, base, i, length - 1, at(i), latest) end
  if at(i) ~= special.taken then return false end
  if not each and min(i - first, length - i) > MOST_MOVED then return false end
  last = max(last, newest)
  if not each then
    without(i, min(n, (total(i + 1) - total(i)) % wrap))
    return true
  end
  cutEach(i, min(n, stop - i))
  return true
end
-- cut removes n units, from the i-th entry on.
local function cut(i, n)
  if each then return cutEach(i, n) end
  n = min(n, (behind - total(i)) % wrap)
  local rest = beyond(text, head, i, length, total(i), behind, n)
  text = repacked(first, i, n) .. sub(text, head + 1 + size * rest, head + size * length)
  dropped = (dropped + n) % wrap
  work = work + #text / 256
  head, first, length = 0, 0, #text / size
  look()
end
-- give removes the oldest n units that still count. A gate keeps entries that no longer count,
-- for a clock that runs back, except those that now has made obsolete. If too many of them would have
-- to be moved, they go too, and the clock does not run back before now.
local function give(n)
  fold()
  if gate > 0 then
    local edge, oldest = min(newest, now) - period, at(first)
    if edge >= oldest then drop(after(edge, text, head, base, first, length - 1, oldest, newest)) end
    look()
    local many = not each and newest <= now and gone - first > MOST_MOVED
    if many then drop(gone) end
    if gone < length then cut(gone, n) end
    last = many and e or min(newest, now)
  else
    last = e
    drop(gone)
    keep(max((own > 0 and min(held, own) or held) - n, 0))
  end
end

-- space returns the instant from which n more units can be booked: at most twice the limit may lie ahead of now.
local function space()
  if newest <= now then return now end
  local i = first
  if at(first) <= now then i = after(now, text, head, base, first, length - 1, at(first), latest) end
  local over = units(i) + n - 2 * limit
  return over > 0 and leaving(i, over) or now
end

-- book decides WHEN, BOOK and WITHDRAW.
local function book(op)
  local folded = tail ~= nil
  fold()
  local ahead = wait()
  if op == WHEN then
    special.due, special.vacant = max(special.due, now + ahead), max(special.vacant, space())
    return true, ''
  elseif op == BOOK then
    last = max(special.due, newest)
    look()
    local entry, new, moved = note(folded)
    tail = entry
    look()
    return true, (describe(op, ahead, ahead)), new, moved, entry
  elseif newest == -inf or newest > now and newest ~= special.taken then
    return true, (describe(op, ahead, ahead))
  elseif newest > now then
    undo(-n)
    last = now
  elseif not special.past then
    give(-n)
  elseif not undo(-n) then
    return true, (describe(op, ahead, ahead))
  end
  look()
  local reply, need = describe(op, 0, 0)
  return true, reply, whole(need)
end

return function(s, op, t)
  if not open(s, t, period) then return end
  if op >= WHEN then return book(op) end
  if own > 0 and (denied == 0 or own < limit) then -- units beyond the own number are gone
    fold()
    last = max(last, newest)
    keep(own)
  end
  local ahead = 0
  if held + n > limit or e - newest < gap or newest > now then ahead = wait() end
  local fits = ahead == 0
  local most = op == RECORD and n > 0 and denied == 0 and held >= MOST_UNITS -- nothing can be added
  if n > 0 and not most and (op == RECORD or op == TAKE and (fits or denied > 0 and n <= limit)) then
    if op == RECORD and full() then return false, pack('<dddd', ahead, inf, -1, newest - now + period) end
    local entry, new, moved = note()
    if op == TAKE and fits then
      newest, held = e, held + n
      return true, (describe(op, 0, 0)), new, moved, entry
    end
    tail = entry
    look()
    return fits, (describe(op, ahead, wait())), new, moved, entry
  end
  if most then
    fold()
    if gate == 0 then last = e end
  elseif newest > -inf and n < 0 and op == RECORD then
    give(-n)
  elseif op ~= UNDO or n <= 0 or newest == -inf or not undo(n) then
    return fits, (describe(op, ahead, ahead))
  end
  look()
  local reply, need = describe(op, ahead, wait())
  return fits, reply, whole(need)
end
end

return read, decide
