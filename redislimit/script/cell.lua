-- cell decides the limits with states of fixed size of one rule and key, if there are several.
-- Parameters: a u8, how many; the head of their value; and for each its kind u8 and its parameters, with an empty head.
-- Two limits of one kind need their parameters at the same time, so each has its functions.
local head, format, written, length, fresh
local limits, widths, pool = {}, {}, {}
local function read(pos)
  local count
  count, head, pos = unpack_('<BBc0', args, pos)
  local used, body, o = {}, 'd', 3
  fresh, length = { head, 0 }, #head + 8
  for j = 1, count do
    local kind = string.byte(args, pos)
    local made = pool[kind] or { kinds[kind] }
    local i = (used[kind] or 0) + 1
    pool[kind], used[kind], made[i] = made, i, made[i] or { makers[kind]() }
    pos = made[i][1](pos + 1)
    limits[j], widths[j] = made[i][4], made[i][5]
    if widths[j] == 5 then
      fresh[o], fresh[o + 1], fresh[o + 2], fresh[o + 3], fresh[o + 4] = -inf, 0, 1, 1, -inf
      body, length = body .. 'dI4I4dd', length + 32
    else
      fresh[o], fresh[o + 1], fresh[o + 2] = -inf, 0, 0
      body, length = body .. 'ddd', length + 24
    end
    o = o + widths[j]
  end
  for j = count + 1, #limits do limits[j] = nil end
  format, written = '<c' .. #head .. body, '<c0' .. body
  return pos
end

return read, function(s, op)
  local old, out, same = fresh, {}, head
  if s then
    if #s == length then
      old = { unpack_(format, s) }
      same = old[1]
    end
    if #s ~= length or same ~= head then
      share = share or rarely(SEVERAL)
      return share(s, op, head, limits)
    end
  end
  local till, fits, need, some, converted, o = old[2], true, 0, false, false, 3
  for j = 1, #limits do
    local width = widths[j]
    local own, stop, a, b, c, d, e = limits[j](op, old[o], old[o + 1], old[o + 2], old[o + 3], old[o + 4])
    if stop then
      out[o], out[o + 1], out[o + 2] = a, b, c
      if width == 5 then out[o + 3], out[o + 4] = d, e end
      some, converted = true, converted or not own
      if stop > need then need = stop end
    else
      for i = o, o + width - 1 do out[i] = old[i] end
      if till > need then need = till end
    end
    fits = fits and own
    o = o + width
  end
  if some and op == TAKE and not fits then
    if converted then
      share = share or rarely(SEVERAL)
      return share(s, op, head, limits)
    end
    some = false
  end
  if not some then return fits, s or NONE end
  out[1], out[2], need = head, lasts(till, need)
  return fits, s or NONE, pack(written, unpack(out)), need
end
