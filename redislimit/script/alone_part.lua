if kind == KIND then
PARAMETERS
  local NAMES = INITIAL
  if s then NAMES, place = unpack_('<NUMBERS', s, place) end
  if UNCHANGED then
    repeat
BODY
    until true
    if fits == nil then wrote = -inf end
    if need then numbers = numbers .. pack('<NUMBERS', NAMES) end
  else
    wrote = -inf
  end
end
