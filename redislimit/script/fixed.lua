
-- A state of fixed size that is alone in its value. LIMIT decides by the numbers of a state. It sets whether the cost
-- fits, and if the state changes also the instant until which the new state matters, and its numbers. FRESH is the value
-- of a new key, without a head. lasts is called only if the key's expiry may change: a call costs.
return read, function(s, op)
  local same, till, NAMES = unpack_('<cNAMEDdNUMBERS', s and #s == LENGTH and s or FRESH)
  if same ~= head and s then
    share = share or rarely(SEVERAL)
    return share(s, op, head, { function(op, NAMES)
LIMITED
    end })
  end
  local fits, need = true, nil
  repeat
BODY
  until true
  if not need then return fits, s or NONE end
  if now < need and need <= till and till < inf then need = nil else till, need = lasts(till, need) end
  return fits, s or NONE, pack('<c0dNUMBERS', head, till, NAMES), need
end, nil, mask >= SEVERAL_LIMITS and function(op, NAMES)
LIMITED
end, COUNT
