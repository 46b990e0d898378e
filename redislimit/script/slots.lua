-- slots decides Concurrency.
-- State:      as in glance.lua. An entry is a lease and the identity of its holder. The header's own
--             number is the length of the leases, and an entry then has the beginning of its lease.
--             If leases of several lengths are alive, that number is 0 and an entry has the end.
-- Parameters: cost, limit (slots), period (the length of a lease in us; inf if it ends only by
--             release), extra (the identity, u64).
local EXTRA, EXTRA_SIZE = 'c8', 8
GLANCE
local function read(pos)
  n, limit, period, extra, pos = unpack_('<dddc8', args, pos)
  mark, fresh = period, freshest(n, limit, period)
  return pos
end
local function again(pos)
  extra = sub(args, pos, pos + 7)
  return pos + 8
end

function careful()
ENTRIES
local UNNAMED = pack('<d', 0)
local function wait()
  if n > limit then return inf end
  local lacking = held - (limit - n)
  if n <= 0 or lacking <= 0 then return 0 end
  return leaving(gone, min(lacking, held)) + own - now
end
local function describe(op, ahead, later)
  local room, reset = limit - held, 0
  if room < 0 then room = 0 end
  if held > 0 then reset = newest + own - now end
  if op == TAKE and ahead == 0 then return pack('<dd', room, reset), now + reset end
  return pack('<dddd', ahead, later, room, reset), now + reset
end

-- note returns the entry of a lease that ends last. If the state cannot take a further entry, it
-- also returns a new state to append it to. It returns nothing if the state has no form for such
-- an entry.
local function note()
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
  if before and tail then entry = tail .. entry end
  return entry, new, moved
end

-- leases lists the leases that have not ended.
local function leases()
  drop(gone)
  last = e
  local ends, counts, holders = spread()
  for k = 1, #ends do ends[k] = ends[k] + own end
  return ends, counts, holders
end
-- release takes up to n units off the leases of the identity. It starts with the lease that ends
-- first, or last if step is -1.
local function release(n, step)
  local ends, counts, holders = leases()
  local from, to = 1, #ends
  if step < 0 then from, to = to, from end
  for k = from, to, step do
    if holders[k] == extra then
      local out = min(counts[k], n)
      counts[k], n = counts[k] - out, n - out
    end
  end
  return ends, counts, holders
end
-- holder returns the lease of the identity that ends first, if it holds n units.
local function holder(n)
  local place = head + 1 + size - EXTRA_SIZE
  local from = place + size * gone
  repeat
    local found = string.find(text, extra, from, true)
    if not found then return end
    local i = (found - place) / size
    from = found + 1
    if i % 1 == 0 then return (total(i + 1) - total(i)) % wrap >= n and i end
  until false
end
-- hold inserts a lease into such lists, in the order of the ends. Units beyond twice the slots go to one
-- lease without a holder.
local function hold(n, ends, counts, holders)
  local stop, who = e + period, extra
  n = min(n, MOST_UNITS - held)
  if n > 0 and held + n > 2 * limit then
    who = UNNAMED
    local theirs -- the end of that lease, which may span several entries
    for k = 1, #ends do
      if holders[k] == UNNAMED and ends[k] == (theirs or ends[k]) then
        theirs, n, counts[k] = ends[k], n + counts[k], 0
      end
    end
    stop = max(stop, theirs or stop)
  end
  local k = #ends + 1
  while k > 1 and ends[k - 1] > stop do k = k - 1 end
  table.insert(ends, k, stop)
  table.insert(counts, k, n)
  table.insert(holders, k, who)
  return ends, counts, holders
end
-- keep makes the state of such lists.
local function keep(ends, counts, holders)
  local most = #ends
  tail = nil
  if most > 0 and (ends[most] > last + period or period == inf and ends[1] < inf) then
    own, long = 0, 0
    gather(ends, counts, holders, WIDE, 0, 0, 0)
  else
    own, long = period, period
    for k = 1, most do ends[k] = period < inf and ends[k] - period or last end
    gather(ends, counts, holders, fresh, ends[1] or last, 0, last)
  end
end

-- recede begins the leases that began after now again at now, if the server's clock was set back. Otherwise the lease of
-- a dead holder would last until the clock has caught up. The ends of leases of several lengths come no later than the
-- longest of them, of which at the last write newest - last was left. recede reports whether it has changed the state.
local function recede()
  if tonumber(ARGV[2] or '') or last <= now and (own == 0 or newest <= now) then return end
  local instants, counts, holders = spread()
  local most = own > 0 and now or now + max(period, newest - last)
  for k = 1, #instants do instants[k] = min(instants[k], most) end
  last, till = now, 0
  gather(instants, counts, holders, form, own > 0 and (instants[1] or now) or 0, 0, now)
  return true
end

-- renew gives n units of the identity a new lease. It returns false if the identity no longer holds them.
local function renew()
  local before = held
  fold()
  local i = form ~= WIDE and holder(n)
  if i then
    drop(gone)
    last = e
    without(i, n)
  else
    local ends, counts, holders = release(n, 1)
    local others = 0
    for k = 1, #counts do others = others + counts[k] end
    if before - others < n then return false end
    held = others
    keep(hold(n, ends, counts, holders))
    return true
  end
  tail = note()
  if tail then fold() else keep(hold(n, leases())) end
  return true
end

return function(s, op, t)
  if not open(s, t) then return end
  local receded = recede() and op ~= PEEK
  local ahead = wait()
  local fits = ahead == 0
  if n > 0 and (op == RECORD or op == TAKE and fits) then
    local entry, new, moved
    if held + n <= 2 * limit then entry, new, moved = note() end
    if entry and op == TAKE then
      newest, held = e, held + n
      return true, (describe(op, 0, 0)), new, moved, entry
    end
    if entry then
      tail = entry
      look()
      return fits, (describe(op, ahead, wait())), new, moved, entry
    end
    keep(hold(n, leases()))
  elseif n < 0 and op == RECORD then
    fold()
    local i = form ~= WIDE and holder(-n)
    if i then
      drop(gone)
      last = e
      without(i, -n)
    else
      keep(release(-n, 1))
    end
  elseif n > 0 and op == UNDO then
    keep(release(n, -1))
  elseif op == RENEW then
    fits = renew()
    if not fits and not receded then return fits, (describe(op, ahead, ahead)) end
  elseif not receded then
    return fits, (describe(op, ahead, ahead))
  end
  look()
  local later = ahead
  if op == RECORD and n > 0 then later = wait() end
  local reply, need = describe(op, ahead, later)
  return fits, reply, whole(need)
end
end

return read, decide, again
