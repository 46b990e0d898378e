-- line keeps the line of a Concurrency and key: the callers of all processes that wait for its slots, in the order in
-- which they came. The callers of one process that ask for the same keys are a party. A party lives as long as one of
-- its callers asks now and then; when it dies, all its tickets leave the line together.
--
-- State:  VERSION; the number of parties, u8; the parties; the tickets, first in line first.
-- Party:  its number, u8; the process and what it asks for, 8 bytes each; the instant until which it lives, a double;
--         the instant until which it sleeps, a double; how it hears signals, u8 (0 not at all, 1 by PUBLISH, 2 by
--         SPUBLISH); the number of its tickets, u16.
-- Ticket: the number of its party, u8; a number that grows within the party, a double.
--
-- A ticket has its turn if each one before it sleeps and asks for something else. Parties sleep until another limit than
-- the slots admits them again, for a second at most. So no rate keeps slots from callers that do not need it.
local pack, unpack_, sub, byte, concat, match = struct.pack, struct.unpack, string.sub, string.byte, table.concat, string.match
local PARTY, TICKET, SECOND = 36, 9, 1000000
local LIFE = 3 * SECOND
local spare = inf -- the room that the slots of the caller have left, or -1 if they refused it

-- heed notes that from the reply of a limit of slots.
local function heed(reply)
  local ahead, room, _ = 0, nil, nil
  if #reply == 16 then room = unpack_('<d', reply) else ahead, _, room = unpack_('<ddd', reply) end
  spare = min(spare, ahead > 0 and -1 or room)
end

-- read returns the parties and the tickets in the line of a key without those that have died, and whether some have. It
-- returns nothing if the value is unreadable.
local function read(key)
  local s, parties, dead = state(key), {}, {}
  if not s then return parties, '' end
  work = work + #s / 256
  local rest = #s - 2 - PARTY * (byte(s, 2) or 0)
  if sub(s, 1, 1) ~= VERSION or rest < 0 or rest % TICKET > 0 then return end
  local count, died = byte(s, 2), false
  for i = 1, count do
    local number, who, till, sleeps, hears, held = unpack_('<Bc16ddBH', s, 3 + PARTY * (i - 1))
    if till <= now then
      dead[number], died = true, true
    else -- the clock may have been set back
      parties[#parties + 1] = { number = number, who = who, till = min(till, now + LIFE), sleeps = min(sleeps, now + SECOND), hears = hears, held = held }
    end
  end
  local tickets = sub(s, 3 + PARTY * count)
  if died then
    local left = {}
    for i = 1, #tickets, TICKET do
      if not dead[byte(tickets, i)] then left[#left + 1] = sub(tickets, i, i + TICKET - 1) end
    end
    work = work + #tickets / TICKET
    tickets = concat(left)
  end
  return parties, tickets, died
end

-- write stores a line.
local function write(key, parties, tickets)
  if tickets == '' then
    if state(key) then states[key], ends[key] = false, nil end
    return
  end
  local out, count, last = { '', '' }, 0, 0
  for _, p in ipairs(parties) do
    if p.held > 0 then
      count, last = count + 1, max(last, p.till)
      out[count + 1] = pack('<Bc16ddBH', p.number, p.who, p.till, p.sleeps, p.hears, p.held)
    end
  end
  out[1], out[count + 2] = VERSION .. string.char(count), tickets
  states[key], ends[key] = concat(out), last
  work = work + #states[key] / 256
end

-- first returns the place of the first ticket of a party that picks chooses, and that party.
local function first(parties, tickets, picks)
  local those, some = {}, false
  for _, p in ipairs(parties) do
    if picks(p) then those[p.number], some = p, true end
  end
  if not some then return end
  for i = 1, #tickets, TICKET do
    local p = those[byte(tickets, i)]
    if p then return i, p end
    work = work + 1
  end
end
local function awake(p) return p.sleeps <= now end
local function asleep(p) return p.sleeps > now end

-- signal calls the caller of the first ticket of such a party, now or when the party has slept.
local function signal(key, parties, tickets, picks)
  local i, p = first(parties, tickets, picks)
  if not p or p.hears == 0 then return end
  local name = match(keys[key], p.hears == 1 and '^(.-):{%d+}:' or '^.-:{%d+}') .. ':wake:' .. sub(p.who, 1, 8)
  local message = sub(p.who, 9) .. sub(tickets, i + 1, i + 8)
  if p.sleeps > now then message = message .. pack('<d', p.sleeps - now) end
  redis.pcall(p.hears == 1 and 'PUBLISH' or 'SPUBLISH', name, message)
end

-- wake signals the first caller of a line. If slots are free, it also signals the first one that sleeps.
local function wake(key, freed)
  local parties, tickets = read(key)
  if not parties then return end
  signal(key, parties, tickets, awake)
  if freed then signal(key, parties, tickets, asleep) end
end

-- party returns the party of a caller, and makes one if there is room.
local function party(parties, who)
  local used = {}
  for _, p in ipairs(parties) do
    if p.who == who then return p end
    used[p.number] = p
  end
  if #parties >= MOST_PARTIES then return end
  local number, asks, sleeps = 1, sub(who, 9), 0
  for _, p in ipairs(parties) do
    if sub(p.who, 9) == asks then sleeps = p.sleeps end
  end
  while used[number] do number = number + 1 end
  local p = { number = number, who = who, till = 0, sleeps = sleeps, hears = 0, held = 0 }
  parties[#parties + 1] = p
  return p
end

-- find finds the caller's ticket in one line. It drops older tickets of the party before it if the ticket is the oldest
-- that its process knows: their callers have left.
local function find(a, own, oldest)
  local p, tickets = a.party, a.tickets
  local ticket = pack('<Bd', p.number, own)
  if own == oldest and p.held > 0 then
    local kept, done = {}, 1
    for i = 1, #tickets, TICKET do
      local number = byte(tickets, i) == p.number and unpack_('<d', tickets, i + 1)
      if number == own then break end
      if number and number < own then
        kept[#kept + 1], done, p.held = sub(tickets, done, i - 1), i + TICKET, p.held - 1
      end
      work = work + 1
    end
    if done > 1 then
      tickets = concat(kept) .. sub(tickets, done)
      a.tickets, a.changed, a.dropped = tickets, true, true
    end
  end
  local from, at = 1, nil
  repeat
    at = string.find(tickets, ticket, from, true)
    from = at and at + 1
  until not at or at % TICKET == 1
  a.ticket, a.at = ticket, at
end

-- barred reports whether an earlier ticket keeps the slots.
local function barred(a)
  local asks, by = sub(a.party.who, 9), {}
  for _, p in ipairs(a.parties) do by[p.number] = p.sleeps <= now or sub(p.who, 9) == asks end
  for i = 1, (a.at or #a.tickets + 1) - 1, TICKET do
    if by[byte(a.tickets, i)] then return true end
    work = work + 1
  end
  return false
end

-- remove takes the caller's ticket out of a line.
local function remove(a)
  if a.at then
    a.tickets = sub(a.tickets, 1, a.at - 1) .. sub(a.tickets, a.at + TICKET)
    a.party.held, a.at, a.changed = a.party.held - 1, nil, true
  end
end

-- later returns when the limits besides the slots of a decision admit its costs again. It does not read long logs.
local function later(groups, pos)
  local kept = special
  special = { due = now, vacant = now }
  for _ = 1, groups do
    local kind, key
    kind, key, pos = unpack_('<BH', args, pos)
    pos = kinds[kind][1](pos)
    local s = state(key)
    if kind ~= SLOTS and type(s) ~= 'table' then kinds[kind][2](s, WHEN, tails[key]) end
  end
  local at = special.due
  special = kept
  return at
end

-- pause makes the callers that ask for the same sleep until at, and the first of them ask then. When all slots are
-- taken and all callers ask for the same, the next release calls it instead.
local function pause(a, admitted, at)
  local asks, sleeps, mixed = sub(a.party.who, 9), 0, false
  if at > now then
    sleeps = min(at, now + SECOND)
  elseif not admitted and spare >= 0 then
    sleeps = now + SECOND
  end
  local function alike(p) return sub(p.who, 9) == asks end
  for _, p in ipairs(a.parties) do
    if alike(p) then p.sleeps = sleeps elseif p.held > 0 then mixed = true end
  end
  if admitted and spare > 0 or not admitted and spare >= 0 then wakes[a.key] = wakes[a.key] or false end
  if admitted and sleeps > 0 and (spare > 0 or mixed) then signal(a.key, a.parties, a.tickets, alike) end
end

-- settle writes what a decision changed in one line. The limits besides the slots admit its costs again at the instant at.
local function settle(a, admitted, may, at)
  local p = a.party
  if admitted then
    remove(a)
  else
    p.till, a.changed = now + LIFE, true
    if not a.at and a.room then
      a.tickets, p.held = a.tickets .. a.ticket, p.held + 1
    end
    if not may and a.oldest then
      local _, leader = first(a.parties, a.tickets, awake)
      -- Calls of one process can overtake one another on their way, a dropped ticket may have been the first, and a
      -- signal may have been lost.
      if leader == p or a.dropped or spare >= 0 then wakes[a.key] = wakes[a.key] or false end
    end
  end
  if may then pause(a, admitted, at) end
  if a.changed then write(a.key, a.parties, a.tickets) end
end

-- leave takes the caller's ticket out of one line. The next caller then has its turn.
local function leave(a)
  local asks, was = sub(a.party.who, 9), a.at
  local function alike(p) return sub(p.who, 9) == asks end
  if was and was == first(a.parties, a.tickets, awake) then wakes[a.key] = wakes[a.key] or false end
  local next = was and asleep(a.party) and was == first(a.parties, a.tickets, alike)
  remove(a)
  if next then signal(a.key, a.parties, a.tickets, alike) end
  if a.changed then write(a.key, a.parties, a.tickets) end
end

-- enter reads what a caller asks of count lines, from byte pos of args. It returns the position behind that; whether
-- it is not the caller's turn; the answer; and a function that has to be called after the decision.
local function enter(leaves, count, pos)
  local lines, wait, known = {}, 0, 1
  local from = pos
  pos = pos + 2 * count
  local who, own, oldest, hears
  who, own, oldest, hears, pos = unpack_('<c16ddB', args, pos)
  spare = inf
  for i = 1, count do
    local a = { key = unpack_('<H', args, from + 2 * i - 2) }
    a.parties, a.tickets, a.changed = read(a.key)
    if a.changed then wakes[a.key] = true end
    a.party = a.parties and party(a.parties, who)
    if a.party then
      lines[#lines + 1] = a
      if not leaves then a.party.hears = hears end
      find(a, own, oldest)
      a.oldest = own == oldest
      a.room = a.party.held == 0 or #a.tickets < TICKET * MOST_TICKETS
      if not a.at then known = 0 end
      if leaves then
        leave(a)
      elseif barred(a) then
        wait = max(wait, a.at and (a.at + TICKET - 1) / TICKET or #a.tickets / TICKET)
        if not a.at and not a.room then wait = inf end
      end
    elseif a.parties then
      wait = inf
    end
  end
  if leaves then return pos, false, '', nil end
  return pos, wait > 0, pack('<dB', wait, known), function(admitted, groups, pos)
    local at = groups and wait == 0 and later(groups, pos) or now
    for _, a in ipairs(lines) do settle(a, admitted, wait == 0, at) end
  end
end
return enter, wake, heed
