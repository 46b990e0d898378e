-- many decides several parts of one decision: all are asked first, and if all
-- admit (or whatever they say, of a record), all are written.
return function(pos, op, parts)
  local behind, flag, replies, asked = pos, ADMITTED, {}, op
  if op == TAKE then asked = PEEK end
  local keys, news, times, appended, held = {}, {}, {}, {}, false
  for i = 1, parts do
    local kind, key
    kind, key, behind = unpack_('<BH', args, behind)
    local fits
    kinds[kind] = kinds[kind] or make(kind)
    if tails[key] then
      states[key], tails[key], whole[key] = states[key] .. tails[key], nil, true
    end
    behind, fits, replies[i], news[i], times[i], appended[i] = kinds[kind](behind, states[key], asked)
    keys[i] = key
    held = held or since and now < since + unpack_('<d', ARGV[4], 8 * key - 7)
    if fits == nil then
      flag = UNREADABLE
    elseif not fits and flag == ADMITTED then
      flag = REFUSED
    end
  end
  if op == TAKE and flag == ADMITTED and not held then
    local p = pos
    for i = 1, parts do
      local kind, key, fits
      kind, key, p = unpack_('<BH', args, p)
      p, fits, replies[i], news[i], times[i], appended[i] = kinds[kind](p, states[key], TAKE)
    end
  end
  if flag == UNREADABLE then return behind, flag, {} end
  for i = 1, parts do
    local key = keys[i]
    if appended[i] then
      tails[key], matters[key] = news[i], times[i]
    elseif news[i] then
      states[key], matters[key], whole[key] = news[i], times[i], true
    end
  end
  return behind, flag, replies
end
