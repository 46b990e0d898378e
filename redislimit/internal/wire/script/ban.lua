-- Ban (b), which refuses a key after other groups of its rule have refused it often enough.
-- Value:      VERSION; the instant of the last strike or of the last begin of a ban; the end of the ban; the level, by which the
--             next ban is longer; the instant until which the state matters; and the strikes that count, all doubles.
-- Parameters: the cost; how many strikes begin a ban; within which time; the shortest and the longest ban, all doubles; how many
--             groups of the same rule are before this one and behind it, u8 each; and 1 if no refusal strikes, otherwise 0, u8.
--             several.lua reads the last three, and asks with the op strike if another group refuses a take.
if bans > 0 then
  function groups.b(pos)
    local HEAD = 33
    local n, after, within, shortest, longest = unpack_('<ddddd', args, pos)

    -- struck returns the state after a strike at e.
    local function struck(e, till, level, strikes)
      local from, need = 1, nil
      if e >= till + longest then level = 0 end
      while from <= #strikes and unpack_('<d', strikes, from) <= e - within do from = from + 8 end
      strikes = sub(strikes, from) .. pack('<d', e)
      if #strikes / 8 >= after then
        local length = shortest * 2^level
        if length <= longest then level = min(level + 1, 63) else length = longest end
        till, strikes = e + length, ''
        need = till + longest
      else
        need = max(e + within, till + longest)
      end
      return till, need, VERSION .. pack('<dddd', e, till, level, need) .. strikes
    end

    return function(s, op)
      local last, till, level, need, new = -inf, -inf, 0, -inf, nil
      if s then
        if sub(s, 1, 1) ~= VERSION or #s < HEAD or (#s - HEAD) % 8 > 0 then return end
        last, till, level, need = unpack_('<dddd', s, 2)
        if not (level >= 0 and level < 64 and till < 2^53 and need < 2^53) then return end -- no ban has it
      end
      local e = max(now, last)
      local fits, left = n <= 0 or e >= till, nil
      local before = fits and 0 or till - now
      if op == 'strike' then till, need, new = struck(e, till, level, s and sub(s, HEAD + 1) or '') end
      left = e < till and till - now or 0
      local room, reset = left > 0 and 0 or 2^53, max(need - now, 0)
      return fits, pack('<dddd', before, left, room, reset), new, new and need
    end, pos + 43
  end
end
