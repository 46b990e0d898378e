-- The same for one decision that is repeated for every other key. It writes after the last one, like the others.
if mask == ALONE and #keys > 1 and not ARGV[4] then
  local op, _, _, key, pos = unpack_('<BHBH', args, 3)
  if op <= TAKE and key == 1 then
PARAMETERS
    local again, first, count, step, after = unpack_('<BHHB', args, pos)
    local out, o, news, moves = { pack('<d', now) }, 1, {}, {}
    if again ~= AGAIN or first ~= 2 or count + 1 ~= #keys or count > 1 and step ~= 1 or after <= behind then out = nil end
    for key = 1, out and #keys or 0 do
      local s = stored[key]
      local same, till, NAMES = unpack_('<cNAMEDdNUMBERS', s and #s == LENGTH and s or FRESH)
      if s and (same ~= head or not UNCHANGED) then
        out = nil
        break
      end
      local fits, need = true, nil
      repeat
BODY
      until true
      if fits == nil then
        out = nil
        break
      end
      if need then
        if now >= need or need > till then
          if till > 0 and need > now then need = need + floor((need - now) / 2) end
          till, moves[key] = need, need
        end
        news[key] = pack('<c0dNUMBERS', head, till, NAMES)
      end
      out[o + 1], out[o + 2] = fits and ADMITTED or REFUSED, s or '\0'
      o = o + 2
    end
    if out then
WRITE
    end
  end
end
