-- many decides several parts of one decision. It asks all parts first. If all of them admit, or
-- if the op is RECORD, it writes all of them.
return function(pos, op, parts)
  local behind, flag, replies, asked = pos, ADMITTED, {}, op
  if op == TAKE then asked = PEEK end
  local numbers, news, moved, added, held = {}, {}, {}, {}, false
  local function ask(i, p, op)
    local kind, key
    kind, key, p = unpack_('<BH', args, p)
    local limit = kinds[kind]
    p = limit[1](p)
    local fits
    fits, replies[i], news[i], moved[i], added[i] = limit[2](state(key), op, tails[key])
    numbers[i] = key
    return p, fits
  end
  for i = 1, parts do
    local fits
    behind, fits = ask(i, behind, asked)
    held = held or since and withheld(numbers[i])
    if fits == nil then
      flag = UNREADABLE
    elseif not fits and flag == ADMITTED then
      flag = REFUSED
    end
  end
  if flag == UNREADABLE then return behind, flag, {} end
  if op == TAKE and flag == ADMITTED and not held then
    for i = 1, parts do pos = ask(i, pos, TAKE) end
  end
  for i = 1, parts do change(numbers[i], news[i], moved[i], added[i]) end
  return behind, flag, replies
end
