-- One decision on one limit of a fixed size needs no functions. Each function that a call creates costs it, and so does
-- each local that a function shares. The functions decide if the op does not ask or take, or if the state has another
-- head or was written under another rate.
if mask == ALONE and #keys == 1 then
  local op, _, _, _, pos = unpack_('<BHBH', args, 3)
  if op <= TAKE then
PARAMETERS
    local s = stored[1]
    local same, till, NAMES = unpack_('<cNAMEDdNUMBERS', s and #s == LENGTH and s or FRESH)
    if pos > behind and (not s or same == head and UNCHANGED) then
      local fits, need = true, nil
      repeat
BODY
      until true
      if need then
        if now < need and need <= till then
          call('SETRANGE', keys[1], '0', pack('<c0dNUMBERS', head, till, NAMES))
        else
          if till > 0 and need > now then need = need + floor((need - now) / 2) end
          local ms = string.format('%.0f', max(math.ceil((need - now) / 1000) + (ARGV[3] or 0), 1))
          call('PSETEX', keys[1], ms, pack('<c0dNUMBERS', head, need, NAMES))
        end
      end
      if fits ~= nil then return pack('<d', now) .. (fits and ADMITTED or REFUSED) .. (s or '\0') end
    end
  end
end
