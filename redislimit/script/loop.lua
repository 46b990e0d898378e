-- write stores a state, or appends to it; false deletes it. Keys that expire together share one
-- text of the time. A debt may take longer than Redis' clock can tell.
local last, ms
local function write(key, new, moved, added)
  if new == false then
    call('DEL', keys[key])
  elseif not new then
    call('APPEND', keys[key], added)
  elseif not moved then
    call('SETRANGE', keys[key], '0', new)
  else
    if added then new = new .. added end
    if moved == inf then return call('SET', keys[key], new) end
    if moved ~= last then
      last, ms = moved, string.format('%.0f', min(max(math.ceil((moved - now) / 1000) + (ARGV[3] or 0), 1), MOST_AHEAD))
    end
    call('PSETEX', keys[key], ms, new)
  end
end

local pos, stop = 3, behind
local op, parts, decide, again

-- One decision of one part needs less than a batch.
if #keys == 1 and mask % 2 == 0 then
  local kind, limit, key
  op, parts, kind, key, pos = unpack_('<BHBH', args, pos)
  limit = kinds[kind]
  if op <= TAKE and limit[1](pos) > stop then
    local fits, reply, new, moved, added = limit[2](stored[1], op)
    if new or added then write(1, new, moved, added) end
    if fits == nil then return pack('<d', now) .. rarely(BROKEN)(1) end
    return pack('<d', now) .. (fits and ADMITTED or REFUSED) .. reply
  end
  pos = 3
end

-- The batch, in order: each decision sees what the previous ones changed.
states = {} -- states that differ from the stored ones; false to delete
tails = {} -- text to append to states
ends = {} -- new expiries of keys

-- state returns the state of a key after the previous decisions, without its tail.
function state(key)
  local s = states[key]
  if s == nil then return stored[key] end
  return s
end
function change(key, new, moved, added)
  if new then
    states[key] = new
    if moved then ends[key] = moved end
  end
  if added or tails[key] and new then tails[key] = added end
end
-- withheld reports whether the server is too new to admit the decision.
local number = 0
function withheld() return now < since + unpack_('<d', ARGV[4], 8 * number - 7) end

local out, o = { pack('<d', now) }, 1
if since then
  out[2], o = pack('<d', since), 2
end
local left, step = 0, 0 -- repeats of the previous decision, and by how much their keys differ
while pos <= stop and (work <= MOST_WORK or number == 0 or kinds[LINES] and not kinds[LINES][5]()) do
  local code, key, id, answer, first, refused, lined, whole, resume
  number = number + 1
  code, key, pos = unpack_('<BH', args, pos)
  while code == LINE do
    lined, pos = key % 256, kinds[LINES][1](key % 256, floor(key / 256), pos)
    code, key, pos = unpack_('<BH', args, pos)
  end
  if code == IDENTIFIED then
    local length
    id, length, pos = key, unpack_('<I4', args, pos)
    answer = kinds[IDENTITY][1](id, pos)
    o = o + 1
    first, out[o] = o, answer or pack('<d', now)
    if answer then pos = pos + length else code, key, pos = unpack_('<BH', args, pos) end
  end
  if answer then -- out has it
  elseif code == AGAIN then
    left, step, pos = unpack_('<HB', args, pos)
  else
    op, parts = code, key
    special = op >= UNDO and { found = special and special.found, given = op == WITHDRAW } or nil
    if lined == CALLS then
      o = o + 1
      refused, out[o] = kinds[LINES][2](parts, pos)
    end
    if refused then
      op = PEEK
    elseif op == BOOK then
      local longest
      longest, pos = unpack_('<d', args, pos)
      if lined then longest = kinds[LINES][3](longest) end
      local p = pos
      special.due, special.vacant = now, now
      for _ = 1, parts do
        local kind, key
        kind, key, p = unpack_('<BH', args, p)
        p = kinds[kind][1](p)
        if kinds[kind][2](state(key), WHEN, tails[key]) == nil then special.vacant = inf end -- the PEEK reports the value
      end
      refused = special.due - now > longest or special.vacant > now or since and withheld()
      if refused then op = PEEK end
      o = o + 1
      out[o] = pack('<dd', special.due, special.vacant)
    elseif op == WITHDRAW then
      special.taken, special.past, pos = unpack_('<dd', args, pos)
      special.past = special.past >= 0 and max(special.past, now - special.taken) or nil
    elseif op == UNDO then
      special.taken, special.past, pos = unpack_('<dd', args, pos)
      if id then special.taken = special.found end
      special.past = max(special.past, now - special.taken)
    elseif op == UPTO then
      o = o + 1
      out[o], pos, whole, resume = kinds[FITTING][1](pos, parts)
      op = TAKE
    end
  end
  if answer then -- nothing is left to do
  elseif op == RESET then
    local flag, cleared = ADMITTED, {}
    for i = 1, parts do
      code, key, pos = unpack_('<BH', args, pos)
      cleared[i] = key
      if stored[key] == FOREIGN or stored.earlier and stored.earlier[key] then flag = rarely(BROKEN)(key) end
    end
    for i = 1, flag == ADMITTED and parts or 0 do
      states[cleared[i]], tails[cleared[i]], ends[cleared[i]] = false, nil, nil
    end
    o = o + 1
    out[o] = flag
    if lined then kinds[LINES][4](flag == ADMITTED) end
  elseif parts == 1 then
    if code ~= AGAIN then
      local kind
      kind, key, pos = unpack_('<BH', args, pos)
      local limit = kinds[kind]
      decide, again, pos = limit[2], limit[3], limit[1](pos)
      left = 1
    end
    repeat
      if code == AGAIN and again then pos = again(pos) end
      local asked = op
      if since and op == TAKE and withheld() then
        asked = PEEK -- the engine also knows since, and refuses
      end
      local s = states[key]
      if s == nil then s = stored[key] end
      local tail = tails[key]
      local fits, reply, new, moved, added = decide(s, asked, tail)
      if new then
        states[key] = new
        if moved then ends[key] = moved end
      end
      if added or new and tail then tails[key] = added end
      if fits == nil then
        o = o + 1
        out[o] = rarely(BROKEN)(key)
      else
        out[o + 1], out[o + 2] = fits and not refused and ADMITTED or REFUSED, reply
        o = o + 2
      end
      if lined then
        o = o + 1
        out[o] = kinds[LINES][4](fits and not refused and asked ~= PEEK, special and special.due)
      end
      if id and (fits and op == TAKE or fits ~= nil and op == RECORD or fits == false and kinds[LOG] and decide == kinds[LOG][2]) and (new or added) then
        kinds[IDENTITY][2](id, table.concat(out, '', first, o))
      end
      left, key, number = left - 1, key + step, number + 1
    until left == 0 or work > MOST_WORK
    number = number - 1
  else
    local flag, replies, full
    pos, flag, replies, full = kinds[0][1](pos, op, parts)
    if refused and flag == ADMITTED then flag = REFUSED end
    o = o + 1
    out[o] = flag
    for i = 1, #replies do out[o + i] = replies[i] end
    o = o + #replies
    if lined then
      o = o + 1
      out[o] = kinds[LINES][4](flag == ADMITTED and op ~= PEEK and not (since and withheld()), special and special.due)
    end
    if id and (flag == ADMITTED and op == TAKE and not (since and withheld()) or #flag == 1 and op == RECORD and not full) then
      kinds[IDENTITY][2](id, table.concat(out, '', first, o))
    end
  end
  if whole then args, pos = whole, resume end
end

if pos <= stop or left > 0 then
  o = o + 1
  out[o] = LATER
end

for key, new in pairs(states) do
  local moved = ends[key]
  if new and not moved then
    call('SETRANGE', keys[key], '0', new)
  else
    write(key, new, moved, tails[key])
  end
end
for key, tail in pairs(tails) do
  if states[key] == nil then call('APPEND', keys[key], tail) end
end
if kinds[LINES] then kinds[LINES][6]() end
return table.concat(out)
