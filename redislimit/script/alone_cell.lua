-- The same for one decision on several limits whose states are in one value. The functions also decide if only some of
-- the states change.
if mask > CELLS and mask < CELLS_END and mask % 2 == 0 and #keys == 1 then
  local op, _, kind, _, pos = unpack_('<BHBH', args, 3)
  if op <= TAKE and kind == CELL then
    local s, till, place, all, wrote, last, numbers = stored[1], 0, 1, true, 0, -inf, ''
    local count, length, _, _, whole, pos = unpack_('<BHBc0Bc0Bc0', args, pos)
    if s and (#s ~= length or sub(s, 1, #whole) ~= whole) then count, wrote = 0, -1 end
    if s and count > 0 then till, place = unpack_('<d', s, #whole + 1) end
    for _ = 1, count do
      local kind, fits, need = string.byte(args, pos), true, nil
      pos = pos + 1
KINDS
      all, wrote, last = all and fits, need and wrote + 1 or wrote, max(last, need or -inf)
    end
    if pos > behind and wrote >= 0 and (not all or wrote == 0 or wrote == count) then
      if all and wrote > 0 then
        if now < last and last <= till then
          call('SETRANGE', keys[1], '0', whole .. pack('<d', till) .. numbers)
        else
          if till > 0 and last > now then last = last + floor((last - now) / 2) end
          local ms = string.format('%.0f', max(math.ceil((last - now) / 1000) + (ARGV[3] or 0), 1))
          call('PSETEX', keys[1], ms, whole .. pack('<d', last) .. numbers)
        end
      end
      return pack('<d', now) .. (all and ADMITTED or REFUSED) .. (s or '\0')
    end
  end
end
