-- identity recognises decisions by their identities, each of which has a key of its own for a minute. Its value is VERSION,
-- the instant of the decision, half a us more than the first answer says, and the rest of the answer; after an undo it is
-- VERSION and UNDONE.
local MINUTE, UNDONE = 60000000, pack('<d', inf)

-- released reports whether slots that the decision at byte pos of args took are no longer held. It renews their leases,
-- because the caller only now learns that it holds them.
local function released(pos)
  local op, parts = unpack_('<BH', args, pos)
  pos, special = pos + (op == UPTO and 11 or 3), nil -- what it said of the previous decision
  for _ = 1, op == RECORD and 0 or parts do
    local kind, key
    kind, key, pos = unpack_('<BH', args, pos)
    pos = kinds[kind][1](pos)
    if kind == SLOTS then
      local held, _, new, moved, added = kinds[kind][2](state(key), RENEW, tails[key])
      if held == false then return true end
      if op ~= UPTO then change(key, new, moved, added) end -- it may hold more than its costs
    end
  end
end

-- recall returns the answer of a decision that is known or was undone, or nothing if it has to be made. The decision
-- begins at byte pos of args. For an undo, special.found is then the instant of the take.
local function recall(id, pos)
  local known = state(id)
  if known and (sub(known, 1, 1) ~= VERSION or #known < 9) then
    local op = string.byte(args, pos)
    return pack('<d', now) .. (op == UPTO and pack('<d', 1) or '') .. rarely(BROKEN)(id)
  end
  known = known and sub(known, 2)
  if string.byte(args, pos) ~= UNDO then
    if known and known ~= UNDONE and kinds[SLOTS] and released(pos) then return UNDONE end
    return known or nil
  end
  states[id], ends[id] = VERSION .. UNDONE, now + MINUTE
  if not known or known == UNDONE then return UNDONE end
  special = { found = floor(unpack_('<d', known)) }
end

-- remember keeps the answer of a decision.
local function remember(id, answer)
  states[id], ends[id] = VERSION .. pack('<d', now + 0.5) .. sub(answer, 9), now + MINUTE
end
return recall, remember
