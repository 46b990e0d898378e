-- fitting returns how many times the costs of the groups at byte pos fit, up to most, or 1 if they do not fit once, which the take
-- then refuses. Logs, gates and slots reply with their room; for others it searches by halves.
if uptos > 0 then
  function fitting(pos, parts, most)
    local STEP_WORK = 2 -- of one limit, for each number that is tried
    for _ = 1, parts do
      local letter, key, p = unpack_('<c1H', args, pos)
      local function fits(times)
        local decide
        decide, pos = groups[letter](p, times)
        work = work + STEP_WORK * (letter == 'v' and string.byte(args, p + 2) or 1)
        return decide(state(key), 'peek', tails[key])
      end
      local all, reply = fits(most)
      if all == false and letter == 'b' then return 1 end
      if not all then
        local low, high = 0, most
        if all == false and letter ~= 'v' then low, high = floor(unpack_('<d', reply, 17) / unpack_('<d', args, p)), 0 end
        while all == false and high - low > 1 do
          local middle = floor((low + high) / 2)
          if fits(middle) then low = middle else high = middle end
        end
        most = low
      end
      if most <= 1 then return 1 end
    end
    return most
  end
end
