-- The limits of fixed size of one rule and key, whose states are in one value (v).
-- Value:      the head: VERSION, the number of states, u8, and their identities; the expiry of the key, a double; the states.
--             An identity is the letter of the limit; the ordinal, u8; for windows and cycles also the period in us, a double;
--             for cycles also the origin.
-- Parameters: the length of the rest, u16; how many limits, u8; the length of their value, u16; its format and its head, each a u8
--             and that many bytes; and for each limit its letter, how many numbers its state has, u8, and the format of its
--             parameters, a u8 and that many bytes; and those, all doubles.
if buckets + windows + cycles + quotas + firsts > 0 then
  -- sharing makes the function that decides several limits, or one whose value has other states.
  local function sharing()
    -- adopter makes the function for a value that does not have exactly the states of a group.
    local function adopter()
      local STRANGERS, STATE_WORK = 16, 3 -- states that are kept; work of each state in the value and of each limit
      -- of the letters: the bytes of an identity and of a state, and the format and the numbers of a fresh state
      local SIZES = { t = { 2, 32, '<dI4I4dd' }, l = { 2, 40, '<dI4I4ddd' }, f = { 10, 24, '<ddd' } }
      SIZES.w, SIZES.c = SIZES.f, { 18, 24, '<ddd' }
      local function sizes(name) return SIZES[sub(name, 1, 1)] end

      -- identities returns the identities in a head, and its length, or nothing if it is unreadable.
      local function identities(s)
        if sub(s, 1, 1) ~= VERSION then return end
        local names, pos = {}, 3
        for i = 1, string.byte(s, 2) or 0 do
          local size = sizes(sub(s, pos, pos))
          if not size then return end
          names[i], pos = sub(s, pos, pos + size[1] - 1), pos + size[1]
        end
        return names, pos - 1
      end

      -- ending returns the instant until which a state matters.
      local function ending(name, state)
        local letter, a, b, c, _, _, told = sub(name, 1, 1), unpack_(sizes(name)[3], state)
        if letter == 'c' then return c end
        if letter == 't' then return b > 0 and a + 1 or a end
        if letter == 'l' then return max(b > 0 and a + 1 or a, told) end
        return a + (letter == 'w' and 2 or 1) * unpack_('<d', name, 3)
      end

      -- strangers returns the identities of states that the caller does not know, as another version of the program has, and that
      -- have not expired. There are at most STRANGERS; those that expire first give way.
      local function strangers(names, values)
        local left, edge = {}, now - (tonumber(ARGV[3] or '') or 0) * 1000
        for _, name in ipairs(names) do
          local till = values[name] and ending(name, values[name])
          if till and till > edge then left[#left + 1] = { name = name, till = till } end
        end
        while #left > STRANGERS do
          local first = 1
          for i = 2, #left do
            if left[i].till < left[first].till then first = i end
          end
          table.remove(left, first)
        end
        return left
      end

      -- The value with the states of the group alone, or nothing if it is unreadable; and the others.
      return function(s, group)
        local names, at = identities(s)
        if not names or #s < at + 8 then return end
        local values, from = {}, at + 9
        for _, name in ipairs(names) do
          values[name], from = sub(s, from, from + sizes(name)[2] - 1), from + sizes(name)[2]
        end
        if from ~= #s + 1 then return end
        local own = identities(group.head)
        work = work + STATE_WORK * (#names + #own)
        local value = group.head .. sub(s, at + 1, at + 8)
        for _, name in ipairs(own) do
          value = value .. (values[name] or pack(sizes(name)[3], -inf, 0, 1, 1, -inf, -inf))
          values[name] = nil
        end
        local others = { names = '', values = '', till = 0, count = #own }
        for _, o in ipairs(strangers(names, values)) do
          others.names, others.values = others.names .. o.name, others.values .. values[o.name]
          others.till, others.count = max(others.till, o.till), others.count + 1
        end
        return value, others
      end
    end
    local adopt

    -- each decides several limits, or a value with other states.
    return function(group, s, op)
      local value, others, old, count = s, nil, nil, #group
      if s then old = #s == group.length and { unpack_(group.format, s) } end
      if s and not (old and old[1] == group.head) then
        adopt = adopt or adopter()
        value, others = adopt(s, group)
        if not value then return end
        old = { unpack_(group.format, value) }
      elseif not s then
        old = { group.head, 0 }
        for j = 1, count do
          for i, number in ipairs({ -inf, 0, 1, 1, -inf, -inf }) do
            if i <= group[j].width then old[#old + 1] = number end
          end
        end
      end
      local new, fits, last, some, kept, o = group.new, true, 0, false, nil, 3 -- kept: what limits that refuse have changed
      for j = 1, count do
        local p, own, need = group[j], nil, nil
        own, need, new[o], new[o + 1], new[o + 2], new[o + 3], new[o + 4], new[o + 5] =
          p.decide(p, op, old[o], old[o + 1], old[o + 2], old[o + 3], old[o + 4], old[o + 5])
        if beyond then return end
        if not own then
          fits, kept = fits and own, kept or {}
          kept[j] = need
        end
        if need then
          last, some = max(last, need), true
        else
          last = max(last, old[2])
          for i = o, o + p.width - 1 do new[i] = old[i] end
        end
        o = o + p.width
      end
      local stop = o - 1
      if some and not fits and op == 'take' then -- a refusal writes only what a limit that refuses has converted to a faster rate
        last, some, o = 0, next(kept) ~= nil, 3
        for j = 1, count do
          last = max(last, kept[j] or old[2])
          for i = o, kept[j] and 0 or o + group[j].width - 1 do new[i] = old[i] end
          o = o + group[j].width
        end
      end
      if not some then return fits, value or '\0' end
      local till, moved = lasts(old[2], max(last, others and others.till or 0))
      local text = pack(group.format, group.head, till, unpack(new, 3, stop))
      if others then -- the value may become shorter, so it is stored anew
        local head = VERSION .. string.char(others.count) .. sub(group.head, 3) .. others.names
        text = head .. sub(text, #group.head + 1) .. others.values
        moved = till
      end
      return fits, value or '\0', text, moved
    end
  end
  local each

  local made = {} -- the functions by the text of their parameters

  function groups.v(pos, times)
    local text, behind = unpack_('<Hc0', args, pos)
    if made[text] and not times then return made[text], behind end
    local count, length, format, head, from = unpack_('<BHBc0Bc0', text)
    local group = { length = length, format = format, head = head, new = {} }
    for j = 1, count do
      local letter, width, numbers, at = unpack_('<c1BBc0', text, from)
      local p = { unpack_(numbers, text, at) }
      p.decide, p.width, from, group[j] = limits[letter], width, p[#p], p
      if times and width < 5 then
        p[1] = p[1] * times
      elseif times then -- the product of the rest needs 60 bits, in two limbs
        local cf, den, low = p[2], p[5], fmod(times, 32768)
        local a = (times - low) / 32768 * cf
        local b = fmod(a, den) * 32768 + low * cf
        p[1], p[2] = p[1] * times + (a - fmod(a, den)) / den * 32768 + (b - fmod(b, den)) / den, fmod(b, den)
      end
    end
    local first, decideGroup = group[1], nil
    local decide = first.decide
    if count > 1 then
      each = each or sharing()
      function decideGroup(s, op) return each(group, s, op) end
    else
      function decideGroup(s, op)
        local same, till, fits, need, a, b, c, d, e, f = head, 0, nil, nil, -inf, 0, 1, 1, -inf, -inf
        if s then
          same = nil
          if #s == length then same, till, a, b, c, d, e, f = unpack_(format, s) end
        end
        if same ~= head then
          each = each or sharing()
          return each(group, s, op)
        end
        fits, need, a, b, c, d, e, f = decide(first, op, a, b, c, d, e, f)
        if not need then return fits, s or '\0' end
        if now < need and need <= till then need = nil else till, need = lasts(till, need) end
        return fits, s or '\0', pack(format, head, till, a, b, c, d, e, f), need
      end
    end
    if not times then made[text] = decideGroup end
    return decideGroup, behind
  end
end
