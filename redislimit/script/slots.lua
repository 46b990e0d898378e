-- slots is Concurrency. State: the instant of the last write, the units held,
-- then leases by their end: end (inf: by release alone), units, identity u64.
-- Parameters: cost, slots, length of a lease (inf: without end), identity.
local NOBODY, HEADER = pack('<d', 0), pack('<dd', 0, 0)
-- The leases at hand, from byte 17 of a state on.
local leases, last, held, length
local slots
local e, ended, live -- as look found them

local function read(i) return unpack_('<ddc8', leases, 17 + 24 * i) end

local function look() -- how many leases have ended, and the units of the others
  e, ended, live = now > last and now or last, 0, held
  while ended < length do
    local stop, units = unpack_('<dd', leases, 17 + 24 * ended)
    if stop > e or stop == inf then break end
    live, ended = live - units, ended + 1
  end
end
local function wait(n)
  if n > slots then return inf end
  local lacking, i = live - (slots - n), ended
  if n <= 0 or lacking <= 0 then return 0 end
  if lacking >= live then i = length - 1 end -- for all of them the last is the answer
  local stop, units
  repeat
    stop, units = unpack_('<dd', leases, 17 + 24 * i)
    lacking, i = lacking - units, i + 1
  until lacking <= 0 or i >= length
  return stop - now
end
local function describe(ahead, after)
  local reset = 0
  if live > 0 then reset = unpack_('<d', leases, 24 * length - 7) - now end
  return pack('<dddd', ahead, after, max(slots - live, 0), reset), reset
end

local function forget()
  last, held = e, live
  if ended > 0 then
    leases, length, ended = HEADER .. sub(leases, 17 + 24 * ended), length - ended, 0
  end
end
-- splice puts text in the place of so many leases from the i-th on.
local function splice(i, count, with)
  leases = sub(leases, 1, 16 + 24 * i) .. with .. sub(leases, 17 + 24 * (i + count))
  length = (#leases - 16) / 24
end
-- hold adds a lease where its end belongs, or to its like. Of those that end
-- at one instant any order will do.
local function hold(stop, units, who)
  local i = length
  while i > 0 do
    local other, size, id = read(i - 1)
    if other < stop then break end
    i = i - 1
    if other == stop and id == who then
      return splice(i, 1, pack('<ddc8', stop, size + units, who))
    end
  end
  if i == length then
    leases, length = leases .. pack('<ddc8', stop, units, who), length + 1
  else
    splice(i, 0, pack('<ddc8', stop, units, who))
  end
end
local function take(n, lease, identity)
  forget()
  n = min(n, MOST_UNITS - held)
  if n <= 0 then return end
  held = held + n
  local stop = last + lease
  if held <= 2 * slots then return hold(stop, n, identity) end
  for i = 0, length - 1 do -- beyond it is held for nobody in particular
    local other, size, id = read(i)
    if id == NOBODY then
      stop, n = max(stop, other), n + size
      splice(i, 1, '')
      break
    end
  end
  hold(stop, n, NOBODY)
end
-- give releases n units of the identity, from the lease that ends first, or
-- last if step is -1.
local function give(n, identity, step)
  forget()
  local i = step > 0 and 0 or length - 1
  while n > 0 and i >= 0 and i < length do
    local stop, size, id = read(i)
    if id == identity then
      local out = min(size, n)
      n, held = n - out, held - out
      if size > out then
        splice(i, 1, pack('<ddc8', stop, size - out, id))
      else
        splice(i, 1, '')
        if step > 0 then i = i - 1 end
      end
    end
    i = i + step
  end
end

return function(pos, s, op)
  local n, lease, identity
  n, slots, lease, identity, pos = unpack_('<dddc8', args, pos)
  leases, last, held, length = HEADER, -inf, 0, 0
  if s then
    if #s < 16 or (#s - 16) % 24 ~= 0 then return pos end
    last, held = unpack_('<dd', s)
    leases, length = s, (#s - 16) / 24
  end
  look()
  local ahead = wait(n)
  local fits = ahead == 0
  local after = ahead
  local stop = e + lease
  if op == TAKE and fits and n > 0 and (ended == length or unpack_('<d', leases, 24 * length - 7) < stop) then
    -- The common case: one more lease at the end.
    last, held = e, live + n
    local text = pack('<dd', last, held) .. sub(leases, 17 + 24 * ended) .. pack('<ddc8', stop, n, identity)
    local reply = pack('<dddd', 0, 0, slots - held, stop - now)
    return pos, true, reply, text, stop - now
  end
  if n > 0 and (op == RECORD or op == TAKE and fits) then
    take(n, lease, identity)
    live = held
    if op == RECORD then after = wait(n) end
  elseif n < 0 and op == RECORD then
    give(-n, identity, 1)
    live = held
  elseif n > 0 and op == UNDO then
    give(n, identity, -1)
    live = held
  else
    return pos, fits, (describe(ahead, ahead))
  end
  local reply, reset = describe(ahead, after)
  return pos, fits, reply, pack('<dd', last, held) .. sub(leases, 17), reset
end
