-- The batch: each decision in order, and then the writes.

local out, o, number = { pack('<d', now) }, 1, 0
if since then out[2], o = pack('<d', since), 2 end
local op, parts, times, letter, decide, refused
local woken -- the keys whose slots may have come free
local begun -- the answers before the decision
local left, step = 0, 0 -- repeats of the previous decision, and by how much their keys differ
while pos <= #args and not beyond and (work <= MOST_WORK or number == 0) do
  local word, key, id, final, known, first, was, till
  begun = o
  word, key, pos = unpack_('<Bc0H', args, pos)
  if word == 'wakes' then
    woken = woken or {}
    for i = 0, key - 1 do woken[unpack_('<H', args, pos + 2 * i)] = true end
    word, key, pos = unpack_('<Bc0H', args, pos + 2 * key)
  end
  if word == 'identified' or word == 'final' then
    local length
    id, final, length, pos = key, word == 'final', unpack_('<I4', args, pos)
    was, till = states[id], ends[id]
    known, first, o = recall(id, pos), o + 1, o + 1
    out[o] = known or pack('<d', now)
    if known then pos, number = pos + length, number + 1 else word, key, pos = unpack_('<Bc0H', args, pos) end
  end
  left = known and 0 or 1
  if word == 'again' then
    left, step, pos = unpack_('<HB', args, pos)
  elseif not known then
    op, parts, times, refused = word, key, nil, false
    special = op ~= 'take' and { found = special and special.found } or nil
    if op == 'book' then
      local longest
      longest, pos = unpack_('<d', args, pos)
      local p = pos
      special.due, special.vacant = now, now
      for _ = 1, parts do
        local letter, key, decide
        letter, key, p = unpack_('<c1H', args, p)
        decide, p = groups[letter](p)
        local s = states[key]
        if s == nil then s = stored[key] end
        if decide(s, 'when', tails[key]) == nil then special.vacant = inf end -- the peek reports the value
      end
      refused = special.due - now > longest or special.vacant > now
      special.refused = refused
      o = o + 1
      out[o] = pack('<dd', special.due, special.vacant)
    elseif op == 'withdraw' or op == 'undo' then
      special.taken, special.past, pos = unpack_('<dd', args, pos)
      if id and op == 'undo' then special.taken = special.found end
      special.past = special.past >= 0 and max(special.past, now - special.taken) or nil
    elseif op == 'upto' then
      times, pos = unpack_('<d', args, pos)
      times, op, o = fitting(pos, parts, times), 'take', o + 1
      out[o] = pack('<d', times)
    end
    if parts == 1 and op ~= 'reset' then
      letter, key, pos = unpack_('<c1H', args, pos)
      decide, pos = groups[letter](pos, times)
    end
  end
  while left > 0 do
    local asked, flag, reply, counted, struck = refused and 'peek' or op, nil, '', false, false
    number = number + 1
    -- A server may be too new to admit the decision. The engine also knows since, and refuses.
    if since and (op == 'take' or op == 'book') and now < since + unpack_('<d', ARGV[4], 8 * number - 7) then
      asked, refused = 'peek', refused or op == 'book'
    end
    if op == 'reset' then
      flag, pos = reset(pos, parts)
    elseif parts == 1 then
      local s = states[key]
      if s == nil then s = stored[key] end
      local fits, told, new, moved, added = decide(s, asked, tails[key])
      if new or added then
        if new then states[key] = new end
        if moved then ends[key] = moved end
        if added or tails[key] then tails[key] = added end
        counted = id and (op == 'record' or op == 'take' and (fits or letter == 's'))
      end
      if fits == nil then flag = broken(key) else flag, reply = fits and ADMITTED or REFUSED, told end
    else
      flag, reply, pos, counted, struck = several(pos, asked, parts, times)
    end
    if beyond then
      if id then states[id], ends[id] = was, till end
      break
    end
    if refused and flag == ADMITTED then flag = REFUSED end
    out[o + 1], out[o + 2] = flag, reply
    o = o + 2
    if id and (counted or final and flag == REFUSED) then remember(id, table.concat(out, '', first, o), struck or not counted) end
    left, key, begun = left - 1, key + step, o
    if work > MOST_WORK and left > 0 then break end
  end
end
if beyond then
  out[begun + 1] = string.rep('\255', 8) .. pack('<d', beyond) -- ELSEWHERE; what follows is not read
elseif pos <= #args or left > 0 then
  out[o + 1] = LATER
end

-- write stores a state, or appends to it; false deletes it. Keys that expire together share one text of the time. A debt may take
-- longer than Redis' clock can tell.
local MOST_AHEAD, linger, last, ms = 2^51, tonumber(ARGV[3] or '') or 0, nil, nil
for key, new in pairs(states) do
  local moved = ends[key]
  if new == false then
    call('DEL', keys[key])
  elseif not moved then
    call('SETRANGE', keys[key], '0', new)
  else
    if tails[key] then new = new .. tails[key] end
    if moved == inf then
      call('SET', keys[key], new)
    else
      if moved ~= last then
        last, ms = moved, string.format('%.0f', min(max(math.ceil((moved - now) / 1000) + linger, 1), MOST_AHEAD))
      end
      call('PSETEX', keys[key], ms, new)
    end
  end
end
for key, tail in pairs(tails) do
  if states[key] == nil then call('APPEND', keys[key], tail) end
end

-- Whoever waits for slots that came free hears of it. That is lost without harm, and replicas need not know.
if woken then
  redis.set_repl(redis.REPL_NONE)
  for key in pairs(woken) do
    local lane, name = string.match(keys[key], '^(.-:{%d+}:)(.*)$')
    local sent = wakes == 2 and redis.pcall('SPUBLISH', lane .. 'wake', name)
    if type(sent) ~= 'number' then redis.pcall('PUBLISH', lane .. 'wake', name) end -- before Redis 7.0 there are no shards
  end
end
return table.concat(out)
