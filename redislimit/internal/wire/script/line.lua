-- line keeps the lines of the callers of several processes that wait for slots, and of those that book or ask for a rate.
-- docs/why/queues.md has the rules, and why no line can stand still.
--
-- State of a line of slots: VERSION, and one entry for each process, the oldest caller first.
-- Entry: the process and its own name of the line, 8 bytes each; when its oldest caller came, when it was heard of, and
--        when it was called, 0 if it was not; how many units it was told, how many its callers want, and how many the
--        oldest wants; for how long a called process bars others; how it hears signals, u8 (0 not at all, 1 by PUBLISH,
--        2 by SPUBLISH); 1 if it keeps units for a caller that stays, u8, whose lease is then its name of the line. Instants
--        are in us; all but names and the u8 are doubles.
-- State of a line of a rate: VERSION, and for each process the oldest caller that the rate has refused: the process; the
--        caller's lease, 0 if it books; when it came, and when it was refused; and for how long its place is kept.
--
-- No line is replicated: each process tells its entry anew within a heartbeat.
if lines > 0 then
  local ENTRY, ENTRY_SIZE, WAIT, WAIT_SIZE = '<c8c8dddddddBB', 74, '<c8c8ddd', 40
  local SECOND, THETA = 1000000, 20000 -- callers whose arrivals differ by less than THETA have one age
  local BOOKER, ASKER = string.rep('\0', 8), '\1' .. string.rep('\0', 7)
  local MOST_PROCESSES = 1024
  local TURN, DRY, STANDS, HOLDS = 0, 1, 2, 3
  local known, asked = {}, nil -- the lines read so far, by key; and the ask of which decisions follow

  -- read returns the entries in a line of slots that are alive. The clock may have been set back.
  local function read(key)
    local line, s = known[key], state(key)
    if line then return line end
    line = {}
    if s and sub(s, 1, 1) == VERSION and (#s - 1) % ENTRY_SIZE == 0 then
      for i = 2, #s, ENTRY_SIZE do
        local e = {}
        e.process, e.token, e.arrival, e.heard, e.called, e.told, e.want, e.cost, e.grace, e.hears, e.stays = unpack_(ENTRY, s, i)
        e.arrival, e.heard, e.called = min(e.arrival, now), min(e.heard, now), min(e.called, now)
        if now - e.heard <= SECOND then line[#line + 1] = e else line.changed = true end
        work = work + 1
      end
    end
    known[key], line.foreign = line, s and sub(s, 1, 1) ~= VERSION
    return line
  end

  -- waits returns the entries in a line of a rate whose places are kept.
  local function waits(key)
    local line, s = known[key], state(key)
    if line then return line end
    line = { rate = true }
    if s and sub(s, 1, 1) == VERSION and (#s - 1) % WAIT_SIZE == 0 then
      for i = 2, #s, WAIT_SIZE do
        local process, lease, arrival, refused, lasts = unpack_(WAIT, s, i)
        if refused > now then refused, line.changed = now, true end
        if refused + lasts > now then line[process] = { min(arrival, now), refused + lasts, lease, refused } end
        work = work + 1
      end
    end
    known[key], line.foreign = line, s and sub(s, 1, 1) ~= VERSION
    return line
  end

  -- older counts the other callers in the line of a rate that came before an instant, and returns until when the place of the
  -- first of them is kept.
  local function older(line, process, lease, arrival)
    local count, first, till = 0, inf, 0
    for other, w in pairs(line) do
      if type(w) == 'table' and (other ~= process or w[3] ~= lease) and w[1] < arrival - THETA then
        count = count + 1
        if w[1] < first then first, till = w[1], w[2] end
      end
    end
    return count, till
  end

  -- keep keeps the place of a caller that a rate refuses, unless an older one of its process has one. drop ends it. Callers
  -- without slots share a lease, so their age tells them apart.
  local function same(w, lease, arrival) return w[3] == lease and (lease ~= ASKER or arrival < w[1] + THETA) end
  local function keep(line, process, lease, arrival, till)
    local w = line[process]
    if not w or arrival < w[1] or same(w, lease, arrival) then line[process], line.changed = { arrival, till, lease, now }, true end
  end
  local function drop(line, process, lease, arrival)
    local w = line[process]
    if w and same(w, lease, arrival) then line[process], line.changed = nil, true end
  end

  local function passed(e) return e.called > 0 and now > e.called + e.grace end
  -- keeps returns how many units an entry keeps from younger callers.
  local function keeps(e) return e.hears > 0 and max(e.want, e.cost) or e.cost end

  -- free reads a group of slots. It returns the position behind it, and how many slots are free.
  local function free(pos)
    local letter, key, from = unpack_('<c1H', args, pos)
    local decide, behind = groups[letter](from)
    local fits, reply = decide(state(key), 'peek', tails[key])
    return behind, fits ~= nil and unpack_('<d', reply, 17) or 0
  end

  -- quietly runs a command that replicas need not know.
  local function quietly(...)
    redis.set_repl(redis.REPL_NONE)
    redis.pcall(...)
    redis.set_repl(redis.REPL_ALL)
  end

  -- call calls the process of an entry: units are free for it.
  local function summon(key, line, at, units)
    local e = line[at]
    if e.called == 0 then e.called = now end
    e.told, line.changed = units, true
    if e.hears == 0 then return end
    local age, shard = 0, e.hears == 2
    for i = at + 1, #line do
      if line[i].stays == 0 and not passed(line[i]) then
        age = max(now - line[i].arrival - THETA, 1)
        break
      end
    end
    local name = string.match(keys[key], shard and '^.-:{%d+}' or '^(.-):{%d+}:') .. ':wake:' .. e.process
    quietly(shard and 'SPUBLISH' or 'PUBLISH', name, e.token .. pack('<dd', units, age))
  end

  -- wake calls the processes whose callers may go, the oldest first, except one that hears it anyway.
  local function wake(key, line, free, but)
    local first = true
    for i = 1, #line do
      local e = line[i]
      if free <= 0 then return end
      if passed(e) then -- others go before it
      elseif e.stays == 1 then
        if first then free = free - keeps(e) end
        first = false
      else
        first = false
        local silent = e.called == 0 and now - e.heard > e.grace
        if free < e.cost then
          if silent and e.process ~= but then summon(key, line, i, 0) end
          return
        end
        local units = min(free, max(e.want, e.cost))
        if e.process ~= but and (e.called == 0 or e.told < units) then summon(key, line, i, units) end
        free = free - keeps(e)
      end
    end
  end

  -- room returns how many slots are left for a caller that came at an instant. A caller that stays keeps its units only
  -- while it is the first in line.
  local function room(k, arrival, lease)
    local free, first = k.free, true
    for i = 1, #k.line do
      local e = k.line[i]
      if e.arrival >= arrival - THETA then break end
      if not passed(e) then
        if e.stays == 0 and e.process ~= asked.process or e.stays == 1 and first and e.token ~= lease then free = free - keeps(e) end
        first = false
      end
    end
    if k.want > 0 and k.since < arrival then free = free - k.want end
    return free - k.own
  end

  local function enqueue(line, e)
    local at = 1
    while at <= #line and line[at].arrival <= e.arrival do at = at + 1 end
    table.insert(line, at, e)
    line.changed = true
    return e
  end

  -- entry returns an entry of the process that asks.
  local function entry(token, arrival, cost, want, stays)
    return { process = asked.process, token = token, arrival = arrival, heard = now, called = 0, told = 0, want = want, cost = cost,
      grace = asked.grace, hears = asked.hears, stays = stays }
  end

  -- renew makes the entry of a process that of its callers which stand. It returns whether the process was passed over, and
  -- whether there is no room for it.
  local function renew(k)
    local line, want, old = k.line, k.want + k.own, nil
    for i = #line, 1, -1 do
      if line[i].process == asked.process then
        local e = table.remove(line, i)
        line.changed = true
        if e.stays == 0 then old = e end
      end
    end
    if (want > 0 or k.stays > 0) and #line >= MOST_PROCESSES and not old then return false, true end
    if k.stays > 0 then enqueue(line, entry(k.lease, k.kept, k.stays, k.stays, 1)) end
    if want > 0 then
      local arrival, cost = k.since, k.cost
      if k.own > 0 and (k.want == 0 or k.first < k.since) then arrival, cost = k.first, k.firstCost end
      k.entry = enqueue(line, entry(k.token, arrival, cost, want, 0))
    end
    return old and passed(old)
  end

  -- tell returns how many units are free for the process, for callers of what age at least, and when to look again.
  local function tell(k)
    local e, free, look, age = k.entry, k.free, 0, 0
    local want, cost, first = e and max(e.want, e.cost) or inf, e and e.cost or 1, true
    for i = 1, #k.line do
      local o = k.line[i]
      if passed(o) then -- others go before it
      elseif o.stays == 1 then
        if first and not (e and o.arrival >= e.arrival) then free = free - keeps(o) end
        first = false
      elseif o == e then
        first = false
      else
        first = false
        if e and o.arrival >= e.arrival then
          age = max(now - o.arrival - THETA, 1)
          break
        end
        local at = (o.called > 0 and o.called or o.heard) + o.grace
        if free > 0 and (look == 0 or at < look) then look = at end
        free = free - keeps(o)
      end
    end
    if free < cost then
      return pack('<ddd', 0, 0, look > 0 and k.free >= cost and max(look - now, 0) + 1000 or 0)
    end
    if e then e.called, e.told = now, min(free, want) end
    return pack('<ddd', min(free, want), age, 0)
  end

  -- lined reads the lines of slots that an ask or a decision is about.
  local function lined(count, pos, list)
    for i = 1, count do
      local k = { own = 0, want = 0 }
      k.key, pos = unpack_('<H', args, pos)
      if list.process then
        k.token, k.since, k.cost, k.want, k.lease, k.kept, k.stays, pos = unpack_('<c8dddc8dd', args, pos)
        k.since, k.kept = now - k.since, now - k.kept
      end
      k.line, k.group = read(k.key), pos
      pos, k.free = free(pos)
      list[i] = k
    end
    asked = list
    return pos
  end

  -- What comes before a decision, in place of its op and how many groups it has:
  -- frees n  n lines whose slots the decision may free: for each the index of its key, u16, and a group of its slots
  -- asks n   the process, 8 bytes; how it hears signals, u8; for how long it bars others when it was called; the number of callers;
  --          and n lines: for each the index of its key, u16; its name, 8 bytes; of the callers of the process that stand besides those
  --          asked for the age of the oldest, what that one wants and what all want; the same of one that stays: its lease, 8 bytes,
  --          its age and how many units it keeps, 0 if there is none; and a group of its slots
  -- calls n  a caller: its lease, 8 bytes; its age; 1 if it may hold its slots already, 2 if it stays, u8; how many lines of rates, u8,
  --          and for each its index, u16, its first part, u8, and how long the cost takes there; then the n lines of its slots: for
  --          each its place in the ask, u8, and how many it takes
  -- books 0  the process; the index of its line, u16; the caller's age; how long a unit takes; how long an answer takes
  -- All numbers without a type are doubles. An ask without callers is followed by a peek without a caller.
  line = {}
  function line.frees(count, pos) return lined(count, pos, { callers = 0 }) end
  function line.asks(count, pos)
    local list = {}
    list.process, list.hears, list.grace, list.callers, pos = unpack_('<c8Bdd', args, pos)
    return lined(count, pos, list)
  end
  function line.calls(count, pos)
    local c, rates = { slots = {} }, nil
    c.lease, c.age, c.flags, rates, pos = unpack_('<c8dBB', args, pos)
    for i = 1, rates do
      local key, at, unit
      key, at, unit, pos = unpack_('<HBd', args, pos)
      c[i] = { key, unit, at = at }
    end
    for i = 1, count do
      local at, cost
      at, cost, pos = unpack_('<Bd', args, pos)
      c.slots[i] = { asked[at], cost }
    end
    asked.caller = c
    return pos
  end
  function line.books(_, pos)
    local b = {}
    b.process, b.key, b.age, b.unit, b.way, pos = unpack_('<c8Hddd', args, pos)
    asked = b
    return pos
  end

  -- limits asks the limits of a caller's decision. It returns the instant at which all but slots admit it, that of each part,
  -- and whether it holds its slots already.
  local function limits(parts, pos, again)
    local kept, held, due, dues = special, false, now, {}
    for i = 1, parts do
      special = { due = now, vacant = now }
      local letter, key, decide
      letter, key, pos = unpack_('<c1H', args, pos)
      decide, pos = groups[letter](pos)
      local s = state(key)
      if letter ~= 'n' then
        if type(s) ~= 'table' then decide(s, 'when', tails[key]) end -- a long log is asked by its decision
      elseif again then
        local fits, _, new, moved, added = decide(s, 'renew', tails[key])
        if fits then change(key, new, moved, added) end
        held = held or fits
      end
      dues[i], due = special.due, max(due, special.due)
    end
    special = kept
    return due, dues, held
  end

  -- before looks whether it is a caller's turn. It returns the answer to that: what it is (TURN, DRY if a rate refuses,
  -- STANDS if slots do, or HOLDS), u8; how long a rate refuses, or how many others wait for it; and which slots refuse, a
  -- bit each, u32.
  function line.before(parts, pos)
    local c = asked.caller
    if not c then return false, '' end
    local arrival, due, dues, held = now - c.age, limits(parts, pos, c.flags % 2 == 1)
    if held then return true, pack('<BdI4', HOLDS, 0, 0) end
    local first, others = due, 0
    for i, rate in ipairs(c) do
      local line = waits(rate[1])
      local count, till = older(line, asked.process, c.lease, arrival)
      others = others + older(line, asked.process, c.lease, inf)
      rate.first = now
      for part = rate.at, (c[i + 1] and c[i + 1].at or parts + 1) - 1 do rate.first = max(rate.first, dues[part]) end
      if count > 0 then rate.first = max(rate.first, min(till, max(due, now + SECOND / 50) + count * rate[2], now + SECOND / 5)) end
      first = max(first, rate.first)
    end
    if first > now then
      for _, rate in ipairs(c) do -- not where it would bar others for long while another rate refuses it
        if rate.first == first or first - now <= max(rate[2], SECOND / 5) then
          keep(waits(rate[1]), asked.process, c.lease, arrival, first + SECOND / 20)
        end
      end
      return true, pack('<BdI4', DRY, first - now, 0)
    end
    local refusing, bit = 0, 1
    for _, s in ipairs(c.slots) do
      if room(s[1], arrival, c.lease) < s[2] then refusing = refusing + bit end
      bit = 2 * bit
    end
    if refusing == 0 then return false, pack('<BdI4', TURN, others, 0) end
    bit = refusing
    for _, s in ipairs(c.slots) do
      local k = s[1]
      if bit % 2 == 1 then
        if k.own == 0 then k.first, k.firstCost = arrival, s[2] end
        k.own = k.own + s[2]
      elseif c.flags >= 2 and (k.stays == 0 or arrival < k.kept) then
        k.lease, k.kept, k.stays = c.lease, arrival, s[2]
      end
      bit = floor(bit / 2)
    end
    for _, rate in ipairs(c) do
      local line = waits(rate[1])
      if c.flags >= 2 then keep(line, asked.process, c.lease, arrival, now + SECOND) else drop(line, asked.process, c.lease, arrival) end
    end
    return true, pack('<BdI4', STANDS, 0, refusing)
  end

  -- longest returns how far ahead a caller may book: not at all before an older one, of another process or of the same call.
  function line.longest(longest)
    local b, line = asked, waits(asked.key)
    b.arrival, b.longest = now - b.age, longest
    b.ahead = older(line, b.process, BOOKER, b.arrival)
    return (b.ahead > 0 or line.refused == b.process) and -1 or longest
  end

  -- after notes what became of a decision. It returns what the last caller's answer ends with: for each line the units that
  -- are free for the process, the least age of their callers, when to look again, and a u8: 1 if the process was passed
  -- over, 2 if there is no room for it in the line.
  function line.after(admitted, due)
    local a = asked
    if a.unit then
      local line, retry = waits(a.key), 0
      if not admitted then retry = max(due - now - a.longest, SECOND / 50) + min(a.ahead * a.unit, SECOND / 5) end
      if line.refused ~= a.process then
        drop(line, a.process, BOOKER, a.arrival)
        if not admitted then
          keep(line, a.process, BOOKER, a.arrival, now + retry + SECOND / 20 + 4 * a.way)
          line.refused = a.process
        end
      end
      return pack('<d', retry)
    end
    if a.caller and admitted then
      for _, rate in ipairs(a.caller) do
        drop(waits(rate[1]), a.process, a.caller.lease, now - a.caller.age)
      end
    end
    local out, _ = {}, nil
    for i, k in ipairs(a) do
      if admitted or not a.process then _, k.free = free(k.group) end
    end
    a.callers = a.callers - 1
    if a.callers > 0 then return '' end
    for i, k in ipairs(a) do
      local over, full = false, false
      if a.process then over, full = renew(k) end
      if #k.line > 0 then wake(k.key, k.line, k.free, a.process) end
      if a.process then out[i] = tell(k) .. string.char((over and 1 or 0) + (full and 2 or 0)) end
    end
    return table.concat(out)
  end

  -- complete reports whether no caller of an ask is missing.
  function line.complete() return not asked or (asked.callers or 0) <= 0 end

  -- store writes the lines that have changed.
  function line.store()
    for key, line in pairs(known) do
      if line.changed and not line.foreign then -- another program's value stays
        local out, expiry = { VERSION }, 3 * SECOND
        for i, e in ipairs(line) do
          out[i + 1] = pack(ENTRY, e.process, e.token, e.arrival, e.heard, e.called, e.told, e.want, e.cost, e.grace, e.hears, e.stays)
        end
        if line.rate then
          for process, w in pairs(line) do
            if type(w) == 'table' then
              out[#out + 1], expiry = pack(WAIT, process, w[3], w[1], w[4], w[2] - w[4]), max(expiry, w[2] - now)
            end
          end
        end
        if #out > 1 then
          quietly('SET', keys[key], table.concat(out), 'PX', string.format('%.0f', expiry / 1000 + 1))
        elseif state(key) then
          quietly('DEL', keys[key])
        end
      end
    end
  end
end
