
-- A state of fixed size that is alone in its value. LIMIT decides by the numbers of a state. It sets whether the cost
-- fits, and if the state changes also the instant until which the new state matters, and its numbers.
return read, function(s, op)
  local same, till, NAMES = head, 0, -inf, FRESH
  if s then
    if #s == LENGTH then same, till, NAMES = unpack_('<cNAMEDdNUMBERS', s) end
    if #s ~= LENGTH or same ~= head then
      share = share or rarely(SEVERAL)
      return share(s, op, head, { function(op, NAMES)
LIMITED
      end })
    end
  end
  local fits, need = true, nil
  repeat
BODY
  until true
  if not need then return fits, s or NONE end
  till, need = lasts(till, need)
  return fits, s or NONE, pack('<c0dNUMBERS', head, till, NAMES), need
end, nil, mask >= SEVERAL_LIMITS and function(op, NAMES)
LIMITED
end, COUNT
