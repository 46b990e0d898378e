-- identity recognises decisions by their identities, each of which has a key of its own for a minute. Its value is the
-- instant of the decision and the answer; after an undo it is UNDONE.
local MINUTE, UNDONE = 60000000, pack('<d', inf)

-- recall returns the answer of a decision that is known or was undone, or nothing if it has to be made. The decision
-- begins at byte pos of args. For an undo, found is then the instant of the take.
local function recall(id, pos)
  local known = state(id)
  if string.byte(args, pos) ~= UNDO then return known or nil end
  states[id], ends[id] = UNDONE, now + MINUTE
  if not known or known == UNDONE then return UNDONE end
  found = unpack_('<d', known)
end

-- remember keeps the answer of a decision.
local function remember(id, answer)
  states[id], ends[id] = answer, now + MINUTE
end
return recall, remember
