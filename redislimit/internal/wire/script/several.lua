-- Decisions of several groups, and resets.
if sets > 0 then
  -- several decides the groups of a decision. It asks all of them first. If all of them admit, or if the op is not a take, it notes
  -- what they change. A record for which a log is full changes nothing. It returns the answer, the position behind the groups, and
  -- whether the costs were counted, and whether a ban has counted its refusal.
  function several(pos, op, parts, times)
    local struck = false
    local flag, full, from, names, fits, replies, new, moved, added = ADMITTED, false, { pos }, {}, {}, {}, {}, {}, {}
    local function ask(i, op)
      local letter, key, p = unpack_('<c1H', args, from[i])
      local decide
      decide, from[i + 1] = groups[letter](p, times)
      names[i], fits[i], replies[i], new[i], moved[i], added[i] = key, decide(state(key), op, tails[key])
      full = full or op == 'record' and letter == 's' and fits[i] == false and not new[i] and not added[i]
    end
    for i = 1, parts do
      ask(i, op)
      if fits[i] == nil then
        flag = broken(names[i])
      elseif not fits[i] and flag == ADMITTED then
        flag = REFUSED
      end
    end
    local behind = from[parts + 1]
    if #flag > 1 then return flag, '', behind, false end
    -- strikes reports whether the i-th group is a ban that counts the refusal: another group of its rule refuses.
    local function strikes(i)
      if sub(args, from[i], from[i]) ~= 'b' then return false end
      local n = unpack_('<d', args, from[i] + 3)
      local before, after, spared = string.byte(args, from[i] + 43, from[i] + 45)
      if n <= 0 or spared > 0 then return false end
      for j = i - before, i + after do
        if fits[j] == false then return true end
      end
      return false
    end
    for i = 1, parts do
      -- What it takes is not taken, and a log has then to describe its state.
      if op == 'take' and flag == REFUSED and fits[i] and strikes(i) then
        struck = true
        ask(i, 'strike')
      elseif op == 'take' and flag == REFUSED and fits[i] or full and (new[i] or added[i]) then
        ask(i, 'peek')
      end
      change(names[i], new[i], moved[i], added[i])
    end
    return flag, table.concat(replies), behind, op == 'record' and not full or op == 'take' and (flag == ADMITTED or struck), struck
  end
end

if resets > 0 then
  -- reset clears the states of the groups. It returns the answer and the position behind them.
  function reset(pos, parts)
    local cleared, broke = {}, nil
    for i = 1, parts do
      local _
      _, cleared[i], pos = unpack_('<c1H', args, pos)
      local key = cleared[i]
      if stored[key] == FOREIGN then broke = broken(key) end
    end
    for _, key in ipairs(broke and {} or cleared) do states[key], tails[key], ends[key] = false, nil, nil end
    return broke or ADMITTED, pos
  end
end
