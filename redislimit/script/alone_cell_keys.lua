-- The same for one decision on two or three limits that is repeated for every other key. LIMITS is the text of each limit,
-- with its own names for its parameters and for the numbers of its state: fits2 and need2 are those of the second. STATES
-- are all numbers; WIDE_NARROW are those to read and write if the first state has five and the second three, and so on.
-- The numbers of the last state come last, so they need no distinction.
if mask > CELLS and mask < CELLS_END and mask % 2 == 0 and #keys > 1 and not ARGV[4] then
  local op, _, kind, key, pos = unpack_('<BHBH', args, 3)
  local again, first, others, step = unpack_('<BHHB', args, behind - 5)
  if op <= TAKE and kind == CELL and key == 1 and again == AGAIN and first == 2 and others + 1 == #keys and (others == 1 or step == 1) then
    local count, length, format, written, whole, pos = unpack_('<BHBc0Bc0Bc0', args, pos)
    local same, out, o, news, moves = count <= MOST, { pack('<d', now) }, 1, {}, {}
    local kind1, kind2, kind3
    local fits1, fits2, fits3, need1, need2, need3 = true, true, true, true, true, true
PARAMETERS
    local wide1, wide2 = kind1 == BUCKET, kind2 == BUCKET
    local numbers = '<' .. sub(written, 5) -- of the states, which follow <c0d
    for key = 1, same and pos == behind - 5 and #keys or 0 do
      local s, known, till = stored[key], whole, 0
      local STATES
      if not s then
        FRESH
      elseif #s ~= length then
        known = nil
      elseif wide1 and (wide2 or count == 2) then
        known, till, WIDE_WIDE = unpack_(format, s)
      elseif wide1 then
        known, till, WIDE_NARROW = unpack_(format, s)
      elseif wide2 or count == 2 then
        known, till, NARROW_WIDE = unpack_(format, s)
      else
        known, till, NARROW_NARROW = unpack_(format, s)
      end
      same = known == whole
LIMITS
      if not same then break end
      local fits = fits1 and fits2 and fits3
      if fits and need1 and need2 and need3 then
        local need = max(need1, need2)
        if count == 3 then need = max(need, need3) end
        local moved
        if now >= need or need > till then
          moved = till > 0 and need > now and need + floor((need - now) / 2) or need
          moves[key] = moved
        end
        if wide1 and (wide2 or count == 2) then
          news[key] = moved and pack(written, whole, moved, WIDE_WIDE) or pack(numbers, WIDE_WIDE)
        elseif wide1 then
          news[key] = moved and pack(written, whole, moved, WIDE_NARROW) or pack(numbers, WIDE_NARROW)
        elseif wide2 or count == 2 then
          news[key] = moved and pack(written, whole, moved, NARROW_WIDE) or pack(numbers, NARROW_WIDE)
        else
          news[key] = moved and pack(written, whole, moved, NARROW_NARROW) or pack(numbers, NARROW_NARROW)
        end
      elseif fits and (need1 or need2 or count == 3 and need3) then -- not all states change
        same = false
        break
      end
      out[o + 1], out[o + 2] = fits and ADMITTED or REFUSED, s or '\0'
      o = o + 2
    end
    if same and o > 1 then
      local place = string.format('%.0f', #whole + 8)
WRITE
    end
  end
end
