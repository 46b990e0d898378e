-- cell decides the limits with states of fixed size of one rule and key, if there are several.
-- Parameters: a u8, how many; the length of their value, u16; its format to read and to write, and its head, each a u8
--             and that many bytes; and for each limit its kind u8 and its parameters, with an empty head.
-- Two limits of one kind need their parameters at the same time, so each has its functions.
local count, length, format, written, head
local limits, widths, pool, out = {}, {}, {}, {}
local function read(pos)
  count, length, format, written, head, pos = unpack_('<BHBc0Bc0Bc0', args, pos)
  for j = 1, count do
    local kind = string.byte(args, pos)
    local place = kind + 16 * j
    local made = pool[place] or j == 1 and kinds[kind] or { makers[kind]() }
    pool[place] = made
    pos = made[1](pos + 1)
    limits[j], widths[j] = made[4], made[5]
  end
  for j = count + 1, #limits do limits[j] = nil end
  return pos
end

-- several decides on a value of other states, or if not all of them change.
local function several(s, op)
  share = share or rarely(SEVERAL)
  return share(s, op, head, limits)
end

-- two decides two limits of which the first has five numbers, or three.
local function two(op, s, same, till, ...)
  local first, second = limits[1], limits[2]
  if same ~= head then return several(s, op) end
  local fits, need, also, stop
  if widths[1] == 5 then
    local a, b, c, d, e, f, g, h, i, j = ...
    fits, need, a, b, c, d, e = first(op, a, b, c, d, e)
    also, stop, f, g, h, i, j = second(op, f, g, h, i, j)
    if need and stop and (fits and also or op ~= TAKE) then
      till, need = lasts(till, max(need, stop))
      return fits and also, s or NONE, pack(written, head, till, a, b, c, d, e, f, g, h, i, j), need
    end
  else
    local a, b, c, f, g, h, i, j = ...
    fits, need, a, b, c = first(op, a, b, c)
    also, stop, f, g, h, i, j = second(op, f, g, h, i, j)
    if need and stop and (fits and also or op ~= TAKE) then
      till, need = lasts(till, max(need, stop))
      return fits and also, s or NONE, pack(written, head, till, a, b, c, f, g, h, i, j), need
    end
  end
  if op ~= TAKE and (need or stop) or need and not fits or stop and not also then
    return several(s, op)
  end
  return fits and also, s or NONE
end

-- three decides three limits, of which each of the first two has five numbers, or three.
local function three(op, s, same, till, ...)
  local first, second, third = limits[1], limits[2], limits[3]
  if same ~= head then return several(s, op) end
  local fits, need, also, stop, too, last
  if widths[1] == 5 and widths[2] == 5 then
    local a, b, c, d, e, f, g, h, i, j, k, l, m, n, o = ...
    fits, need, a, b, c, d, e = first(op, a, b, c, d, e)
    also, stop, f, g, h, i, j = second(op, f, g, h, i, j)
    too, last, k, l, m, n, o = third(op, k, l, m, n, o)
    if need and stop and last and (fits and also and too or op ~= TAKE) then
      till, need = lasts(till, max(need, stop, last))
      return fits and also and too, s or NONE, pack(written, head, till, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o), need
    end
  elseif widths[1] == 5 then
    local a, b, c, d, e, f, g, h, k, l, m, n, o = ...
    fits, need, a, b, c, d, e = first(op, a, b, c, d, e)
    also, stop, f, g, h = second(op, f, g, h)
    too, last, k, l, m, n, o = third(op, k, l, m, n, o)
    if need and stop and last and (fits and also and too or op ~= TAKE) then
      till, need = lasts(till, max(need, stop, last))
      return fits and also and too, s or NONE, pack(written, head, till, a, b, c, d, e, f, g, h, k, l, m, n, o), need
    end
  elseif widths[2] == 5 then
    local a, b, c, f, g, h, i, j, k, l, m, n, o = ...
    fits, need, a, b, c = first(op, a, b, c)
    also, stop, f, g, h, i, j = second(op, f, g, h, i, j)
    too, last, k, l, m, n, o = third(op, k, l, m, n, o)
    if need and stop and last and (fits and also and too or op ~= TAKE) then
      till, need = lasts(till, max(need, stop, last))
      return fits and also and too, s or NONE, pack(written, head, till, a, b, c, f, g, h, i, j, k, l, m, n, o), need
    end
  else
    local a, b, c, f, g, h, k, l, m, n, o = ...
    fits, need, a, b, c = first(op, a, b, c)
    also, stop, f, g, h = second(op, f, g, h)
    too, last, k, l, m, n, o = third(op, k, l, m, n, o)
    if need and stop and last and (fits and also and too or op ~= TAKE) then
      till, need = lasts(till, max(need, stop, last))
      return fits and also and too, s or NONE, pack(written, head, till, a, b, c, f, g, h, k, l, m, n, o), need
    end
  end
  if op ~= TAKE and (need or stop or last) or need and not fits or stop and not also or last and not too then
    return several(s, op)
  end
  return fits and also and too, s or NONE
end

-- any decides any number of limits.
local function any(op, s, old)
  local till, fits, need, wrote, o = old[2], true, 0, 0, 3
  for j = 1, count do
    local own, stop
    if widths[j] == 5 then
      own, stop, out[o], out[o + 1], out[o + 2], out[o + 3], out[o + 4] = limits[j](op, old[o], old[o + 1], old[o + 2], old[o + 3], old[o + 4])
      o = o + 5
    else
      own, stop, out[o], out[o + 1], out[o + 2] = limits[j](op, old[o], old[o + 1], old[o + 2])
      o = o + 3
    end
    fits = fits and own
    if stop then
      wrote, need = wrote + 1, max(need, stop)
      if not own and op == TAKE then wrote = inf end
    end
  end
  if wrote == count and (fits or op ~= TAKE) then
    out[1] = head
    out[2], need = lasts(till, need)
    return fits, s or NONE, pack(written, unpack(out, 1, o - 1)), need
  end
  if wrote == inf or wrote > 0 and op ~= TAKE then -- not all of them change
    return several(s, op)
  end
  return fits, s or NONE
end

local function fresh()
  local old = { head, 0 }
  for j = 1, count do
    local o = #old
    old[o + 1], old[o + 2], old[o + 3] = -inf, 0, widths[j] == 5 and 1 or 0
    if widths[j] == 5 then old[o + 4], old[o + 5] = 1, -inf end
  end
  return old
end

return read, function(s, op)
  local decide = count == 2 and two or count == 3 and three
  if not s then
    if decide then return decide(op, s, unpack(fresh())) end
    return any(op, s, fresh())
  end
  if #s ~= length then return several(s, op) end
  if decide then return decide(op, s, unpack_(format, s)) end
  local old = { unpack_(format, s) }
  if old[1] ~= head then return several(s, op) end
  return any(op, s, old)
end
