-- The batch, in order: what a decision changes, the next ones see. make is the
-- function that makes a kind.
local out, o = { pack('<d', now) }, 1
if since then
  out[2], o = pack('<d', since), 2
end

local pos, stop = 1, #args
while pos <= stop do
  local op, parts, kind, key, behind = unpack_('<BHBH', args, pos)
  local begin = pos + 3 -- of the first part
  pos = behind
  if op == UNDO then
    taken = unpack_('<d', args, begin)
    kind, key, pos = unpack_('<BH', args, begin + 8)
    begin = begin + 8
  end
  if op == RESET then
    for i = 1, parts do
      if i > 1 then kind, key, pos = unpack_('<BH', args, pos) end
      states[key], matters[key], tails[key], whole[key] = false, -1, nil, true
    end
    o = o + 1
    out[o] = ADMITTED
  elseif parts == 1 then
    local fits, reply, new, time
    if op == TAKE and since and now < since + unpack_('<d', ARGV[4], 8 * key - 7) then
      op = PEEK -- the caller knows since, too, and takes it as a refusal
    end
    local decide = kinds[kind]
    if not decide then
      decide = make(kind)
      kinds[kind] = decide
    end
    local appended
    if tails[key] then
      states[key], tails[key], whole[key] = states[key] .. tails[key], nil, true
    end
    pos, fits, reply, new, time, appended = decide(pos, states[key], op)
    if appended then
      tails[key], matters[key] = new, time
    elseif new then
      states[key], matters[key], whole[key] = new, time, true
    end
    if fits == nil then
      o = o + 1
      out[o] = UNREADABLE
    else
      out[o + 1], out[o + 2] = fits and ADMITTED or REFUSED, reply
      o = o + 2
    end
  else
    local flag, replies
    kinds[0] = kinds[0] or make(0)
    pos, flag, replies = kinds[0](begin, op, parts)
    o = o + 1
    out[o] = flag
    for i = 1, #replies do out[o + i] = replies[i] end
    o = o + #replies
  end
end

local linger = tonumber(ARGV[3] or 0)
for key, time in pairs(matters) do
  if time < 0 then
    redis.call('DEL', KEYS[key])
  elseif time == inf then
    redis.call('SET', KEYS[key], states[key])
  else
    time = min(time, MOST_AHEAD)
    local ms = (time - time % 1000) / 1000
    if time % 1000 > 0 then ms = ms + 1 end
    ms = max(ms + linger, 1)
    if whole[key] then
      redis.call('PSETEX', KEYS[key], ms, states[key] .. (tails[key] or ''))
    else
      redis.call('APPEND', KEYS[key], tails[key])
      redis.call('PEXPIRE', KEYS[key], ms)
    end
  end
end
return table.concat(out)
