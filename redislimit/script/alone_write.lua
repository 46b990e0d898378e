      -- The writes of a decision that was repeated for all keys, and the answer. A state whose expiry need not move keeps it.
      local last, ms
      for key = 1, #keys do
        local new, moved = news[key], moves[key]
        if moved then
          if moved ~= last then
            last, ms = moved, string.format('%.0f', max(math.ceil((moved - now) / 1000) + (ARGV[3] or 0), 1))
          end
          call('PSETEX', keys[key], ms, new)
        elseif new then
          call('SETRANGE', keys[key], PLACE, new)
        end
      end
      return table.concat(out)
