-- broken returns the answer to a decision about a value that this version cannot read.
return function(key)
  local s, old = stored[key], stored.earlier and stored.earlier[key]
  if old then return UNREADABLE .. pack('<H', key) .. old end
  if type(s) == 'table' then s = call('GETRANGE', s.name, '0', '0') end
  return UNREADABLE .. pack('<HBB', key, 0, string.byte(s) or 0)
end
