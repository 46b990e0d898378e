-- many decides a decision of several groups. It asks all of them first. If all of them admit, or if the op is not a
-- TAKE, it writes what they change. A RECORD for which a log is full writes nothing.
return function(pos, op, parts)
  local flag, replies, asked, full = ADMITTED, {}, op, false
  if op == TAKE and since and withheld() then asked = PEEK end
  local from, numbers, news, moved, added, fits = {}, {}, {}, {}, {}, {}
  local function ask(i, op)
    local kind, key, p = unpack_('<BH', args, from[i])
    local limit = kinds[kind]
    from[i + 1] = limit[1](p)
    fits[i], replies[i], news[i], moved[i], added[i] = limit[2](state(key), op, tails[key])
    numbers[i] = key
    return kind
  end
  from[1] = pos
  for i = 1, parts do
    local kind = ask(i, asked)
    full = full or op == RECORD and kind == LOG and fits[i] == false and not news[i] and not added[i]
    if fits[i] == nil then
      flag = rarely(BROKEN)(numbers[i])
      replies[i] = ''
    elseif not fits[i] and flag == ADMITTED then
      flag = REFUSED
    end
  end
  local behind = from[parts + 1]
  if #flag > 1 then return behind, flag, {} end
  for i = 1, parts do
    if asked == TAKE and flag == REFUSED and fits[i] or full and (news[i] or added[i]) then
      -- What it takes is not taken, and a log has then to describe its state.
      ask(i, PEEK)
    end
    change(numbers[i], news[i], moved[i], added[i])
  end
  return behind, flag, replies, full
end
