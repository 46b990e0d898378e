-- Decisions with identities, each of which has a key of its own for a minute. Its value is VERSION, the instant of the decision,
-- half a us more than the first answer says, and the rest of the answer; after an undo it is VERSION and UNDONE. Of a refusal that
-- counted towards a ban, or is final, the instant is -2^52 less what the first answer says.
if identities > 0 then
  local MINUTE, REFUSED_BELOW = 60000000, -2^52

  -- released reports whether slots that a decision took are no longer held. It renews their leases, because the caller only now
  -- learns that it holds them.
  local function released(op, parts, pos)
    pos, special = pos + (op == 'upto' and 8 or 0), nil -- what it said of the previous decision
    for _ = 1, op == 'record' and 0 or parts do
      local letter, key, decide
      letter, key, pos = unpack_('<c1H', args, pos)
      decide, pos = groups[letter](pos)
      if letter == 'n' then
        local held, _, new, moved, added = decide(state(key), 'renew', tails[key])
        if held == false then return true end
        if op ~= 'upto' then change(key, new, moved, added) end -- it may hold more than its costs
      end
    end
  end

  -- recall returns the answer of a decision that is known or was undone, or nothing if it has to be made. The decision begins at
  -- byte pos. For an undo, special.found is then the instant of the take.
  function recall(id, pos)
    local op, parts, from = unpack_('<Bc0H', args, pos)
    local known = state(id)
    if known and (sub(known, 1, 1) ~= VERSION or #known < 9) then
      return pack('<d', now) .. (op == 'upto' and pack('<d', 1) or '') .. broken(id)
    end
    known = known and sub(known, 2) or nil
    local refused = known and unpack_('<d', known) < REFUSED_BELOW
    if op ~= 'undo' then return known and known ~= UNDONE and not refused and slots > 0 and released(op, parts, from) and UNDONE or known end
    states[id], ends[id] = VERSION .. UNDONE, now + MINUTE
    if not known or known == UNDONE or refused then return UNDONE end
    special = { found = floor(unpack_('<d', known)) }
  end

  -- remember keeps the answer of a decision, which may be a refusal that took nothing.
  function remember(id, answer, refused)
    states[id], ends[id] = VERSION .. pack('<d', refused and REFUSED_BELOW - now or now + 0.5) .. sub(answer, 9), now + MINUTE
  end
end
