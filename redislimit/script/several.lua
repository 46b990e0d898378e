-- several decides on a value that does not have exactly the states of the caller's limits, or of which only some change.
-- It finds each state by its identity, and keeps the states of limits that the caller does not know, as another
-- version of the program has, until they expire.
-- The head of a value is VERSION, the number of its states, u8, and their identities. An identity is the letter of the
-- algorithm; the ordinal, u8; for windows and cycles also the period in us, a double; for cycles also the origin.
local pack, unpack_, sub, max, inf = struct.pack, struct.unpack, string.sub, math.max, math.huge
local NAMED = { t = 2, l = 2, f = 10, w = 10, c = 18 } -- bytes of an identity
local SIZES = { t = 32, l = 40, f = 24, w = 24, c = 24 } -- bytes of a state
local STATE_WORK = 3 -- of each state in the value and of each limit
local FORMATS = { t = '<dI4I4dd', l = '<dI4I4ddd', f = '<ddd', w = '<ddd', c = '<ddd' }

-- identities returns the identities in a head, and the length of the head, or nothing if it is unreadable.
local function identities(s)
  if sub(s, 1, 1) ~= VERSION then return end
  local names, pos = {}, 3
  for i = 1, string.byte(s, 2) or 0 do
    local length = NAMED[sub(s, pos, pos)]
    if not length then return end
    names[i], pos = sub(s, pos, pos + length - 1), pos + length
  end
  return names, pos - 1
end

-- states returns the states in a value behind its head, by identity, or nothing if it is unreadable.
local function read(s, names, from)
  local states = {}
  for _, name in ipairs(names) do
    local size = SIZES[sub(name, 1, 1)]
    states[name], from = sub(s, from, from + size - 1), from + size
  end
  return from == #s + 1 and states
end

-- ends returns the instant until which a state matters.
local function ends(name, state)
  local letter = sub(name, 1, 1)
  local a, b, c, _, _, told = unpack_(FORMATS[letter], state)
  if letter == 'c' then return c end
  if letter == 't' then return b > 0 and a + 1 or a end
  if letter == 'l' then return max(b > 0 and a + 1 or a, told) end
  return a + (letter == 'w' and 2 or 1) * unpack_('<d', name, 3)
end

-- strangers returns the identities of states that the caller does not know and that have not expired. There are at most
-- STRANGERS; those that expire first give way.
local function strangers(names, states)
  local left, till, edge = {}, {}, now - (ARGV[3] or 0) * 1000
  for _, name in ipairs(names) do
    local stop = states[name] and ends(name, states[name])
    if stop and stop > edge then left[#left + 1], till[#till + 1] = name, stop end
  end
  while #left > STRANGERS do
    local first = 1
    for i = 2, #left do
      if till[i] < till[first] then first = i end
    end
    table.remove(left, first)
    table.remove(till, first)
  end
  return left
end

return function(s, op, head, limits)
  local names, at = identities(s or head)
  if not names or s and #s < at + 8 then return end
  local till, states = 0, {}
  if s then till, states = unpack_('<d', s, at + 1), read(s, names, at + 9) end
  if not states then return end
  work = work + STATE_WORK * (#names + #limits)
  local value, changed, fits, own = { head, pack('<d', till) }, {}, true, identities(head)
  for j = 1, #limits do
    local name = own[j]
    local format, w, f, d, u, told, fit, need = FORMATS[sub(name, 1, 1)]
    value[j + 2] = states[name] or pack(format, -inf, 0, 1, 1, -inf, -inf)
    states[name] = nil
    w, f, d, u, at, told = unpack_(format, value[j + 2])
    fit, need, w, f, d, u, at, told = limits[j](op, w, f, d, u, at, told)
    changed[j] = need and { fit, need, pack(format, w, f, d, u, at, told) }
    fits = fits and fit
  end
  local reply, last, some = table.concat(value), 0, false
  for j = 1, #limits do
    local state = changed[j]
    -- A refusal writes only what a limit that refuses has converted to a faster rate.
    if state and (op ~= TAKE or fits or not state[1]) then
      value[j + 2], last, some = state[3], max(last, state[2]), true
    else
      last = max(last, till)
    end
  end
  if not some then return fits, reply end
  local left = s and strangers(names, states) or {}
  value[1] = VERSION .. string.char(#limits + #left) .. sub(head, 3) .. table.concat(left)
  for _, name in ipairs(left) do
    value[#value + 1], last = states[name], max(last, ends(name, states[name]))
  end
  till = lasts(till, last)
  value[2] = pack('<d', till)
  return fits, reply, table.concat(value), till
end
