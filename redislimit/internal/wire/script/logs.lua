-- SlidingLog and RateGate (s), and Concurrency (n).
-- State:  a header and entries, the oldest first.
-- Header: a u8 and five doubles. The u8 is the version of the stored format and the form of the entries. The doubles are the expiry
--         of the key; the instant of the last write, or an earlier one if the newest entry has it; the instant that entries count
--         from; the total of the units that have left; and a number of the kind's own.
-- Entry:  the us since the header's instant; the total of all units up to and including it; and for slots the holder, 8 bytes.
-- Totals wrap, and only their differences are used. The forms SHORT and LONG omit them: each entry then holds one unit.
--
-- Of logs, an entry is an instant at which units were taken. The header's own number is 0, or if the last writer counts denied
-- attempts, how many of the newest units the state has: the largest limit that wrote an entry that still counts. Some entries that
-- no longer count stay for a while, and with denied attempts also some units beyond the own number. No answer depends on them, and
-- reading them costs less than cutting them off each time. Every entry that counts stays otherwise, because a later limit may be
-- larger.
-- Of slots, an entry is a lease. The header's own number is the length of the leases, and an entry then has the beginning of its
-- lease. If leases of several lengths are alive, that number is 0 and an entry has the end.
--
-- Parameters of a log:  cost, limit, period and gap in us, 1 if denied attempts count, 1 for a gate.
-- Parameters of slots: cost, limit, the length of a lease in us (inf if it ends only by release), and the holder, 8 bytes.
if logs + slots > 0 then
  local HEAD, SHORT, LONG, NARROW, MIDDLE, WIDE = 41, 17, 18, 19, 20, 21
  local MOST_UNITS, MOST_EXTRA, MOST_KEPT, MOST_LOOSENED, MOST_MOVED = 2^53, 512, 65536, 512, 1000

  -- The parameters of the group: mark is the header's own number in a state of these parameters, fresh the form of a new state,
  -- and named the bytes of a holder.
  local n, limit, period, gap, denied, gate, extra, mark, fresh, named

  local form, each, AT, TOTAL, BOTH, ENTRY, width, size, wrap, reach -- width of an instant, size of an entry
  local function use(f)
    form, each = f, f <= LONG
    if f == SHORT then
      AT, BOTH, width, size, wrap, reach = '<I4', '<I4', 4, 4, 2^32, 2^32
    elseif f == LONG then
      AT, BOTH, width, size, wrap, reach = '<I6', '<I6', 6, 6, 2^32, 2^48
    elseif f == NARROW then
      AT, TOTAL, BOTH, width, size, wrap, reach = '<I4', '<I2', '<I4I2', 4, 6, 2^16, 2^32
    elseif f == MIDDLE then
      AT, TOTAL, BOTH, width, size, wrap, reach = '<I6', '<I4', '<I6I4', 6, 10, 2^32, 2^48
    else
      AT, TOTAL, BOTH, width, size, wrap, reach = '<d', '<d', '<dd', 8, 16, 2^55, inf
    end
    size, ENTRY = size + named, named > 0 and BOTH .. 'c8' or BOTH
  end

  -- written packs an entry.
  local function written(instant, total, holder)
    if each then return pack(ENTRY, instant, holder) end
    return pack(ENTRY, instant, total % wrap, holder)
  end

  -- peek reads numbers of a text. Of a long value that was not read, paged reads them from Redis.
  local peek = unpack_
  local function paged(format, s, pos)
    pos = pos or 1
    return unpack_(format, call('GETRANGE', s.name, string.format('%.0f', pos - 1), string.format('%.0f', pos + 47)))
  end

  -- after returns the first entry later than an instant, among those of s behind byte from, which count from the instant place. It
  -- lies above low, whose instant is a, and at or below high, whose instant is b. The search first interpolates, as if entries came
  -- evenly, and then bisects.
  local function after(instant, s, from, place, low, high, a, b)
    local guesses = 2
    while high - low > 1 do
      local step = (high - low) / 2
      if guesses > 0 then
        local guess = (high - low) * ((instant - a) / (b - a))
        guesses = guesses - 1
        if guess < high - low then step = max(guess, 1) end -- not of the entries of a damaged value
      end
      local mid = low + (step - step % 1) -- whole: low + step may not hold what step does
      local x = place + peek(AT, s, from + 1 + size * mid)
      if x > instant then high, b = mid, x else low, a = mid, x end
    end
    return high
  end

  -- beyond returns the first entry of s behind byte from with which more than count units have come since the i-th entry. left is
  -- the total before the i-th entry, and sum the total before the entry at length. It returns length if there are no more than
  -- count units. The search first interpolates, as if all entries had the same number of units, then looks beside that, and then
  -- bisects.
  local function beyond(s, from, i, length, left, sum, count)
    local all = (sum - left) % wrap
    if all <= count then return length end
    if each then return i + count end
    local low, high, near = i, length - 1, true
    local mid = min(i + floor(count * (length - i) / all), high)
    while low < high do
      if (peek(TOTAL, s, from + 1 + size * mid + width) - left) % wrap > count then
        high, mid = mid, mid - 1
      else
        low, mid = mid + 1, mid + 1
      end
      if not near then mid = floor((low + high) / 2) end
      near = false
    end
    return low
  end

  -- glance makes a simple take, in two cases. Without a state, it writes a new one. With a state of the same mark, it appends an
  -- entry if the cost fits, or rewrites the state if too many of its entries have left or its key has to live longer. It returns
  -- what deciding returns, or nothing if the take is not simple. Most decisions are simple, and glance costs half as much as the
  -- full path. Of a long value it reads only some entries.
  local function glance(s)
    local need, edge, long = now + period, now - period, type(s) == 'table'
    if not s then
      if n > limit then return end
      if form ~= fresh then use(fresh) end
      local new = pack('<Bddddd', fresh, need, now, now, 0, mark) .. written(0, n, extra)
      return true, pack('<dd', gap > 0 and 0 or limit - n, period), new, need
    end
    local bytes = long and s.bytes or #s
    peek = long and paged or unpack_
    if bytes <= HEAD or denied > 0 and (long or gap > 0) then return end
    local f, till, last, place, left, own = peek('<Bddddd', s)
    if f < SHORT or f >= WIDE then return end
    if f ~= form then use(f) end
    local length, dropped, gone = (bytes - HEAD) / size, left, 0
    if length % 1 > 0 or own ~= mark or not (place <= now and left % 1 == 0) then return end
    local newest, sum = peek(BOTH, s, bytes - size + 1)
    if each then sum = left + length end
    local oldest = place + peek(AT, s, HEAD + 1)
    newest = place + newest
    if last > now or newest >= now or edge >= newest then return end
    if edge >= oldest then
      gone = after(edge, s, HEAD, place, 0, length - 1, oldest, newest)
      left = each and left + gone or peek(TOTAL, s, HEAD + 1 + size * (gone - 1) + width)
    end
    local room, ahead, early = limit - (sum - left) % wrap - n, 0, newest + gap - now
    if early > 0 and room >= 0 then return false, pack('<dddd', early, early, 0, newest - edge) end
    if each and n > 1 and (room >= 0 or denied > 0) or n > limit then return end
    if room < 0 then
      local more = denied > 0 and n - room or -room -- units that have to leave, or before the next take if the refusal is written
      local i = beyond(s, HEAD, gone, length, left, sum, more - 1)
      ahead = i < length and place + peek(AT, s, HEAD + 1 + size * i) - edge or period
      if early > 0 then ahead, room = max(ahead, early), -n end
      if denied == 0 then return false, pack('<dddd', ahead, ahead, max(room + n, 0), newest - edge) end
    end
    if now - place >= reach or (sum - dropped) % wrap + n >= wrap / 2 then return end
    local anew = need > till or till == inf and need < inf or 3 * gone > length
    if long and anew then return end
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

  -- careful makes the functions that decide what glance leaves, of logs and of slots.
  local function careful()
    -- The current state. The text has the entries from byte head + 1 on; those before the entry first have left. The tail follows
    -- the text and holds entries at the newest instant.
    local text, head, tail, first, length
    local till, last, base, dropped, own
    local long -- how long an entry counts, in us
    local newest, sum -- the instant of the newest entry, and the total with it
    local latest, behind -- the same without the tail
    local e, gone, held -- the instant of the decision, the entries that no longer count, and the units of the others

    local function at(i) return base + unpack_(AT, text, head + 1 + size * i) end
    local function total(i) -- before the i-th entry
      if i == first then return dropped end
      if i == length then return behind end
      if each then return dropped + i - first end
      return (unpack_(TOTAL, text, head + 1 + size * (i - 1) + width))
    end

    -- later returns the first entry from the i-th on that is later than an instant.
    local function later(instant, i)
      if i == length or instant >= latest then return length end
      local oldest = at(i)
      return instant < oldest and i or after(instant, text, head, base, i, length - 1, oldest, latest)
    end

    -- look measures the state. A clock that runs back does not move the instant of the decision before what was written.
    local function look()
      local instant, all = -inf, dropped
      if first < length then
        instant, all = unpack_(BOTH, text, head + 1 + size * (length - 1))
        instant = base + instant
        if each then all = dropped + length - first end
      end
      latest, behind = instant, all
      if tail then
        instant, all = unpack_(BOTH, tail, #tail - size + 1)
        instant = base + instant
        if each then all = behind + #tail / size end
      end
      newest, sum, e = instant, all, max(now, last)
      if newest > e and long > 0 then e = newest end
      gone = later(e - long, first)
      held = (sum - total(gone)) % wrap
    end

    -- open reads a state and measures it. It returns false if the state is unreadable. Entries count for l us, or otherwise for the
    -- header's own number.
    local function open(s, t, l)
      peek, tail, first, long = unpack_, t, 0, l or mark
      if not s then
        if form ~= fresh then use(fresh) end
        text, head, length = '', 0, 0
        till, last, base, dropped, own = 0, -inf, 0, 0, mark
        look()
        return true
      end
      if #s < HEAD then return false end
      text, head = s, HEAD
      local f
      f, till, last, base, dropped, own = unpack_('<Bddddd', s)
      long = l or own
      if f < SHORT or f > WIDE then return false end
      if f ~= form then use(f) end
      length = (#s - HEAD) / size
      local whole = length % 1 == 0 and dropped % 1 == 0 and own >= 0 and (own % 1 == 0 or own == inf)
      if not (whole and last < MOST_UNITS and base > -MOST_UNITS and base < MOST_UNITS) then return false end
      look()
      return true
    end

    -- entries returns those from the i-th to before the j-th, as text.
    local function entries(i, j) return sub(text, head + 1 + size * i, head + size * j) end

    -- replace makes a text the entries, and measures the state.
    local function replace(new)
      text, head, first, length = new, 0, 0, #new / size
      look()
    end

    -- whole returns the state without its tail, and its expiry. The state matters until need.
    local function whole(need)
      till = lasts(till, need)
      work = work + (length - first) * size / 256
      return pack('<Bddddd', form, till, last, base, dropped, own) .. entries(first, length), till
    end

    -- leaving returns the instant of the entry with which count units have left, counted from the i-th entry on.
    local function leaving(i, count)
      i = beyond(text, head, i, length, total(i), behind, count - 1)
      return i == length and newest or at(i)
    end

    -- drop removes the entries before the i-th.
    local function drop(i)
      if i > first then first, dropped = i, total(i) end
    end

    -- fold moves the tail into the text.
    local function fold()
      if not tail then return end
      text, length, tail = text .. tail, length + #tail / size, nil
      latest, behind = newest, sum
    end

    -- repacked returns the entries from the i-th to before the j-th, with by added to their totals.
    local function repacked(i, j, by)
      local list = {}
      work = work + 2 * (j - i)
      for k = i, j - 1 do
        local instant, count, holder = unpack_(ENTRY, text, head + 1 + size * k)
        list[k - i + 1] = pack(ENTRY, instant, (count + by) % wrap, holder)
      end
      return table.concat(list)
    end

    -- without takes n units out of the i-th entry, which has at least n. Either the totals before it grow or the newer totals
    -- shrink, whichever are fewer.
    local function without(i, n)
      work = work + #text / 256
      local rest = (total(i + 1) - total(i)) % wrap > n and i or i + 1
      if each then return replace(entries(first, i) .. entries(rest, length)) end
      if 2 * i >= first + length then return replace(entries(first, i) .. repacked(rest, length, -n)) end
      local new = repacked(first, i, n) .. entries(rest, length)
      dropped = (dropped + n) % wrap
      replace(new)
    end

    -- spread lists the entries: their instants, units and holders.
    local function spread()
      fold()
      work = work + length - first
      local instants, counts, holders, before = {}, {}, {}, dropped
      for i = first, length - 1 do
        local instant, sum, holder = unpack_(ENTRY, text, head + 1 + size * i)
        if each then sum, holder = before + 1, sum end
        local k = i - first + 1
        instants[k], counts[k], holders[k] = base + instant, (sum - before) % wrap, holder
        before = sum
      end
      return instants, counts, holders
    end

    -- gather makes the text from such lists, without empty entries. It uses the form f, or a larger one if more further units at
    -- the instant would not fit otherwise.
    local function gather(instants, counts, holders, f, from, more, instant)
      local all, most, list, sum = 0, more, {}, 0
      work = work + #instants
      for k = 1, #instants do all, most = all + counts[k], max(most, counts[k]) end
      use(f)
      while instant - from >= reach or all + more >= wrap / 2 or each and most > 1 do use(form + 1) end
      for k = 1, #instants do
        if not each and named == 0 and instants[k] == instants[k + 1] then -- one entry of an instant: see undo
          counts[k], counts[k + 1] = 0, counts[k] + counts[k + 1]
        end
        if counts[k] > 0 then
          sum = sum + counts[k]
          list[#list + 1] = written(instants[k] - from, sum, holders[k])
        end
      end
      base, dropped = from, 0
      replace(table.concat(list))
    end

    -- exact reports whether a total with count more units is exact. In the form WIDE totals do not wrap.
    local function exact(count) return form < WIDE or count <= MOST_UNITS - sum end

    -- roomy reports whether the state can take count more units as a further entry: the key lives long enough, the numbers are not
    -- too large, and not too much of the text has left.
    local function roomy(count)
      local need = e + long
      return newest > -inf and need <= till and (till < inf or need == inf) and 3 * gone <= length and
        e - base < reach and (sum - dropped) % wrap + count < wrap / 2 and exact(count)
    end

    -- loosen makes room for an entry of more than one unit in a form that holds one unit per entry. A long log keeps that form
    -- unless it must not, because each of its entries would have to be written anew.
    local function loosen(count, must)
      if not each or count <= 1 or not (must or named > 0 or length - first <= MOST_LOOSENED) then return false end
      local instants, counts, holders = spread()
      gather(instants, counts, holders, form, instants[1] or e, count, e)
      return true
    end

    -- anew returns a rewritten state without its tail, with room for count more units.
    local function anew(count)
      if first == length and not tail then
        base, dropped, sum = e, 0, 0
        while count >= wrap / 2 do use(form + 1) end
      elseif e - base >= reach or (sum - dropped) % wrap + count >= wrap / 2 or not exact(count) then
        local instants, counts, holders = spread()
        gather(instants, counts, holders, form, instants[1], count, e)
      end
      last = e
      return whole(e + long)
    end

    local function wait()
      if n > limit then return inf end
      if n <= 0 or newest == -inf then return 0 end
      local w, over = 0, held - limit + n
      if gap > 0 and e - newest < gap then w = newest - now + gap end
      if over > 0 then w = max(w, leaving(gone, over) - now + long) end
      if gate > 0 then w = max(w, newest - now) end
      return w
    end

    -- describe returns the reply, and the instant until which the state matters.
    local function describe(op, ahead, later)
      local room, reset = max(limit - held, 0), 0
      if gap > 0 and e - newest < gap or gate > 0 and newest > now then room = 0 end
      if held > 0 then reset = newest - now + long end
      if op == 'take' and ahead == 0 then return pack('<dd', room, reset), now + reset end
      return pack('<dddd', ahead, later, room, reset), now + reset
    end

    -- taken returns what an admitted take returns, whose entry was noted.
    local function taken(entry, new, moved)
      newest, held = e, held + n
      return true, (describe('take', 0, 0)), new, moved, entry
    end

    -- rewritten returns what a decision returns that has changed the entries.
    local function rewritten(fits, op, ahead, after)
      look()
      local reply, need = describe(op, ahead, after or wait())
      return fits, reply, whole(need)
    end

    -- Logs

    -- keep removes the oldest units until at most most units are left. The caller has set last, because the newest entry may be
    -- removed too.
    local function keep(most)
      local over = (sum - dropped) % wrap - most
      if over <= 0 then return end
      first, dropped = beyond(text, head, first, length, dropped, behind, over), (dropped + over) % wrap
      look()
    end

    -- counting returns the number of entries that count.
    local function counting() return length - gone + (tail and #tail / size or 0) end

    -- full reports whether a record leaves more entries than a state may have. Refusals that count have a bound of their own.
    local function full()
      if denied > 0 then return false end
      if each and n > 1 and length - first > MOST_LOOSENED then return counting() + n > limit + MOST_EXTRA end
      return (each or newest ~= e) and counting() >= limit + MOST_EXTRA
    end

    -- note returns the entry of the cost, or of the part of it that the state can hold. If the state cannot take a further entry, or
    -- fold has moved entries of the same call into the text, it also returns a new state to append it to: a tail has one instant
    -- only.
    local function note(folded)
      local most, new, moved = 0, nil, nil -- most is the new own number. If denied attempts did not count before, the units stay.
      if denied > 0 then most = held == 0 and limit or max(limit, own > 0 and own or min(held, limit + MOST_KEPT)) end
      local count = min(n, most > 0 and most or MOST_UNITS - held)
      local tight = loosen(count, most == 0 and counting() + count > limit + MOST_EXTRA)
      tight = tight or folded or own ~= most or most > 0 and held + count > most * 4 / 3 or not roomy(count)
      local stale = newest == e and not each and not tail -- the last entry is replaced by a larger one
      if tight or stale then
        last, own = e, most
        -- A booking ahead may be withdrawn, so a gate keeps those that count now.
        drop(gate > 0 and e > now and min(gone, later(now - period, first)) or gone)
        if most > 0 then keep(most - count) end
        if stale and first < length then
          length = length - 1
          tail = entries(length, length + 1)
        end
        if first == length and not tail then use(fresh) end
        new, moved = anew(count)
      end
      local entry = written(e - base, sum + count)
      if each then entry = (tail or '') .. string.rep(entry, count) end
      return entry, new, moved
    end

    -- cut removes n units, from the i-th entry on.
    local function cut(i, n)
      if each then return replace(entries(first, i) .. entries(min(i + n, length), length)) end
      n = min(n, (behind - total(i)) % wrap)
      local new = repacked(first, i, n) .. entries(beyond(text, head, i, length, total(i), behind, n), length)
      dropped, work = (dropped + n) % wrap, work + #new / 256
      replace(new)
    end

    -- undo removes up to n units that were taken at the instant special.taken. It returns false if there are none, or if too many
    -- entries would have to be moved; the units then stay.
    local function undo(n)
      fold()
      local i, stop = later(special.taken - 1, first), later(special.taken, first)
      if i == stop or not each and min(i - first, length - i) > MOST_MOVED then return false end
      last = max(last, newest)
      if each then cut(i, min(n, stop - i)) else without(i, min(n, (total(i + 1) - total(i)) % wrap)) end
      return true
    end

    -- give removes the oldest n units that still count. A gate keeps entries that no longer count, for a clock that runs back,
    -- except those that now has made obsolete. If too many of them would have to be moved, they go too, and the clock does not run
    -- back before now.
    local function give(n)
      fold()
      if gate == 0 then
        last = e
        drop(gone)
        return keep(max((own > 0 and min(held, own) or held) - n, 0))
      end
      drop(later(min(newest, now) - period, first))
      look()
      local many = not each and newest <= now and gone - first > MOST_MOVED
      if many then drop(gone) end
      if gone < length then cut(gone, n) end
      last = many and e or min(newest, now)
    end

    -- vacancy returns the instant when there is space for the booking: at most twice the limit may lie ahead of now.
    local function vacancy()
      local i = newest > now and later(now, first)
      local over = i and (sum - total(i)) % wrap + n - 2 * limit or 0
      return over > 0 and leaving(i, over) or now
    end

    -- book decides when, book and withdraw.
    local function book(op)
      local folded = tail ~= nil
      fold()
      local ahead = wait()
      if op == 'when' then
        special.due, special.vacant = max(special.due, now + ahead), max(special.vacant, vacancy())
        return true, ''
      elseif op == 'book' then
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
      elseif not undo(-n) then
        return true, (describe(op, ahead, ahead))
      end
      return rewritten(true, op, 0, 0)
    end

    local function ofLog(s, op, t)
      if not open(s, t, period) then return end
      if op == 'when' or op == 'book' or op == 'withdraw' then return book(op) end
      if own > 0 and (denied == 0 or own < limit) then -- units beyond the own number are gone
        fold()
        last = max(last, newest)
        keep(own)
      end
      local ahead = 0
      if held + n > limit or e - newest < gap or newest > now then ahead = wait() end
      local fits = ahead == 0
      local most = op == 'record' and n > 0 and denied == 0 and held >= MOST_UNITS -- nothing can be added
      if n > 0 and not most and (op == 'record' or op == 'take' and (fits or denied > 0 and n <= limit)) then
        if op == 'record' and full() then return false, pack('<dddd', ahead, inf, -1, newest - now + period) end
        local entry, new, moved = note()
        if op == 'take' and fits then return taken(entry, new, moved) end
        tail = entry
        look()
        return fits, (describe(op, ahead, wait())), new, moved, entry
      end
      if most then
        fold()
        if gate == 0 then last = e end
      elseif newest > -inf and n < 0 and op == 'record' then
        give(-n)
      elseif op == 'peek' and special and special.vacant then -- at a booking that is refused
        fold()
        return fits, (describe(op, ahead, vacancy() - now))
      elseif op ~= 'undo' or n <= 0 or newest == -inf or not undo(n) then
        return fits, (describe(op, ahead, ahead))
      end
      return rewritten(fits, op, ahead)
    end

    -- Slots

    local UNNAMED = pack('<d', 0)

    -- lease returns the entry of a lease that ends last. If the state cannot take a further entry, it also returns a new state to
    -- append it to. It returns nothing if the state has no form for such an entry.
    local function lease()
      local new, moved
      local tight = own == period and form ~= WIDE and loosen(n) or not roomy(n)
      if tight then
        drop(gone)
        if first == length and not tail then
          own, long = period, period
          use(fresh)
        end
      end
      if own ~= period or form == WIDE then return end
      local before = tail
      if tight then new, moved = anew(n) end
      local entry = written(e - base, sum + n, extra)
      return before and tail and tail .. entry or entry, new, moved
    end

    -- leases lists the leases that have not ended.
    local function leases()
      drop(gone)
      last = e
      local stops, counts, holders = spread()
      for k = 1, #stops do stops[k] = stops[k] + own end
      return stops, counts, holders
    end

    -- release takes up to n units off the leases of the holder. It starts with the lease that ends first, or last if step is -1.
    local function release(n, step)
      local stops, counts, holders = leases()
      for k = step > 0 and 1 or #stops, step > 0 and #stops or 1, step do
        if holders[k] == extra then
          local out = min(counts[k], n)
          counts[k], n = counts[k] - out, n - out
        end
      end
      return stops, counts, holders
    end

    -- leaseOf returns the lease of the holder that ends first, if it has n units.
    local function leaseOf(n)
      if form == WIDE then return end
      local place = head + 1 + size - named
      local found = string.find(text, extra, place + size * gone, true)
      while found do
        local i = (found - place) / size
        if i % 1 == 0 then return (total(i + 1) - total(i)) % wrap >= n and i end
        found = string.find(text, extra, found + 1, true)
      end
    end

    -- hold inserts a lease into such lists, in the order of the ends. Units beyond twice the slots go to one lease without a holder.
    local function hold(n, stops, counts, holders)
      local stop, who = e + period, extra
      n = min(n, MOST_UNITS - held)
      if n > 0 and held + n > 2 * limit then
        who = UNNAMED
        local theirs -- the end of that lease, which may span several entries
        for k = 1, #stops do
          if holders[k] == UNNAMED and stops[k] == (theirs or stops[k]) then
            theirs, n, counts[k] = stops[k], n + counts[k], 0
          end
        end
        stop = max(stop, theirs or stop)
      end
      local k = #stops + 1
      while k > 1 and stops[k - 1] > stop do k = k - 1 end
      table.insert(stops, k, stop)
      table.insert(counts, k, n)
      table.insert(holders, k, who)
      return stops, counts, holders
    end

    -- store makes the state of such lists.
    local function store(stops, counts, holders)
      local most = #stops
      tail = nil
      if most > 0 and (stops[most] > last + period or period == inf and stops[1] < inf) then
        own, long = 0, 0
        return gather(stops, counts, holders, WIDE, 0, 0, 0)
      end
      own, long = period, period
      for k = 1, most do stops[k] = period < inf and stops[k] - period or last end
      gather(stops, counts, holders, fresh, stops[1] or last, 0, last)
    end

    -- recede begins the leases that began after now again at now, if the server's clock was set back. Otherwise the lease of a dead
    -- holder would last until the clock has caught up. The ends of leases of several lengths come no later than the longest of
    -- them, of which at the last write newest - last was left. recede reports whether it has changed the state.
    local function recede()
      if tonumber(ARGV[2] or '') or last <= now and (own == 0 or newest <= now) then return end
      local instants, counts, holders = spread()
      local most = own > 0 and now or now + max(period, newest - last)
      for k = 1, #instants do instants[k] = min(instants[k], most) end
      last, till = now, 0
      gather(instants, counts, holders, form, own > 0 and (instants[1] or now) or 0, 0, now)
      return true
    end

    -- renew gives n units of the holder a new lease. It returns false if it no longer holds them.
    local function renew()
      local before = held
      fold()
      local i = leaseOf(n)
      if not i then
        local stops, counts, holders = release(n, 1)
        local others = 0
        for k = 1, #counts do others = others + counts[k] end
        if before - others < n then return false end
        held = others
        store(hold(n, stops, counts, holders))
        return true
      end
      drop(gone)
      last = e
      without(i, n)
      tail = lease()
      if tail then fold() else store(hold(n, leases())) end
      return true
    end

    local function ofSlots(s, op, t)
      if not open(s, t) then return end
      local receded = recede() and op ~= 'peek'
      local ahead = wait()
      local fits, done = ahead == 0, receded
      if n > 0 and (op == 'record' or op == 'take' and fits) then
        local entry, new, moved
        if held + n <= 2 * limit then entry, new, moved = lease() end
        if entry and op == 'take' then return taken(entry, new, moved) end
        if entry then
          tail = entry
          look()
          return fits, (describe(op, ahead, wait())), new, moved, entry
        end
        store(hold(n, leases()))
        done = true
      elseif n < 0 and op == 'record' then
        fold()
        local i = leaseOf(-n)
        if i then
          drop(gone)
          last = e
          without(i, -n)
        else
          store(release(-n, 1))
        end
        done = true
      elseif n > 0 and op == 'undo' then
        store(release(n, -1))
        done = true
      elseif op == 'renew' then
        fits = renew()
        done = fits or receded
      end
      if not done then return fits, (describe(op, ahead, ahead)) end
      look()
      return rewritten(fits, op, ahead, op == 'record' and n > 0 and wait() or ahead)
    end

    return ofLog, ofSlots
  end

  -- decide tries glance, and otherwise the functions that careful makes at their first use.
  local ofLog, ofSlots
  local function decide(s, op, t)
    if op == 'take' and n > 0 and not t then
      local fits, reply, new, moved, added = glance(s)
      if reply then return fits, reply, new, moved, added end
    end
    if type(s) == 'table' then
      s.text = s.text or call('GET', s.name)
      return decide(s.text, op, t)
    end
    if not ofLog then ofLog, ofSlots = careful() end
    if named > 0 then return ofSlots(s, op, t) end
    return ofLog(s, op, t)
  end

  -- takes sets what both kinds have.
  local function takes(bytes, times)
    local MOST_SMALL = 2048
    if named ~= bytes then form, named = nil, bytes end
    if times then n = n * times end
    -- The form with room for the limit's units. One of many units or a long period should not reach the end of its instants.
    local small = period <= 2^31 and limit <= MOST_SMALL
    if n == 1 or n == -1 then fresh = small and SHORT or LONG else fresh = small and NARROW or MIDDLE end
  end

  function groups.s(pos, times)
    n, limit, period, gap, denied, gate, pos = unpack_('<dddddd', args, pos)
    takes(0, times)
    mark, extra = denied > 0 and limit or 0, nil
    return decide, pos
  end

  function groups.n(pos, times)
    n, limit, period, extra, pos = unpack_('<dddc8', args, pos)
    takes(8, times)
    gap, denied, gate, mark = 0, 0, 0, period
    return decide, pos
  end
end
