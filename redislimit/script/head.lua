-- Decides a batch of independent decisions in order. Each has one or more groups, and is all or
-- nothing. A group is the limits whose states are in one value: those of one rule and key with states
-- of fixed size, or one log, gate or Concurrency.
--
-- KEYS     the distinct keys of the batch
-- ARGV[1]  the decisions, packed as below
-- ARGV[2]  the instant in us since the epoch; absent for the server's TIME
-- ARGV[3]  ms that a key outlives its state; absent for 0
-- ARGV[4]  only if a new server is denied: how long each decision is denied, in us, as doubles. The
--          last key is then the one that remembers the server
--
-- A u16 comes before the decisions. Its bits are the kinds that occur; bit 0 is set if a decision
-- has several groups, bit 7 if one is UPTO, bit 9 if one has an identity, bit 11 if one follows LINE, and bit 10 if some
-- keys are of long logs. Their indexes then follow the decisions, u16 each, and their number, u16. With bit 12 the keys of
-- earlier versions come before that: for each the index in KEYS of the key that it had to be, u16; a number, u8; and its
-- length, u16, and bytes. Then the length of all that, u32.
--
-- A decision: op u8 (PEEK, TAKE, RECORD, RESET, UNDO, UPTO, RENEW, BOOK or WITHDRAW); groups u16; for UNDO the
-- instant at which the undone take was written, and how long ago its caller sent it at least, in us;
-- for UPTO the most times that it takes the costs: at least 1, and at most what a fresh key admits;
-- for BOOK the longest time until the booked instant, in us; for WITHDRAW the booked instant,
-- and how long ago it was at least if the engine undoes the booking, in us, or -1 if its caller cancels it;
-- then its groups. No cost of a TAKE or BOOK is above the capacity of its limit.
-- A group: kind u8; index into KEYS u16; unless the op is RESET, for a kind of fixed size the head of
-- the value, a u8 and that many bytes; and the parameters of its kind.
-- A decision with an identity follows IDENTIFIED u8; the index of its key in KEYS u16; and its own
-- length u32. If the identity is known, the answer is the first one again. An UNDO with the identity of
-- a take undoes it at the instant that the identity knows, or makes a later take with it UNDONE.
-- A decision that concerns lines follows LINE u8; what comes before it, u8; a number, u8; and what script/line.lua reads.
-- With both, LINE comes first.
-- Decisions of one group that repeat the previous one, of one group too, for other keys: AGAIN u8; the
-- first one's index into KEYS u16; how many there are, u16; by how much the index grows from one to the
-- next, u8; for slots the identity of each.
--
-- Reply: one string. It holds the instant as a double, with ARGV[4] also the instant since which
-- the server is known, and then the answer to each decision. An answer is:
-- - with an identity, the instant of the decision as a double, half a us later if the answer is the
--   first one again. If it was UNDONE, or slots that it took were given back, that is inf, and
--   nothing follows.
-- - for a caller in line, what script/line.lua says of its turn.
-- - for UPTO, how many times it took the costs; the rest is as for a TAKE.
-- - for BOOK, the instant at which all limits admit the costs, and the instant from which all have
--   space for a booking, as doubles. It is ADMITTED if the first is soon enough and the second is now.
-- - a flag u8: REFUSED, ADMITTED, or UNREADABLE if a value cannot be read and nothing was done. Then
--   follow its index in KEYS, u16; 0 and its first byte, which is that of FOREIGN if the value is not a string; or if an
--   earlier version holds the state the number of that version's key for it, u8, and the first byte of that key's value.
-- - each group, unless the flag is UNREADABLE or the op is RESET. For a kind of fixed size it is the
--   value before the decision with the states of that head, or a byte 0 if there was none. For logs,
--   gates and slots it is four doubles: the wait before, the wait after a write, the room, and the wait
--   for the whole capacity. An admitted TAKE has only the last two, measured after it. A room of -1 says
--   that a log is full and the RECORD has written nothing.
-- What script/line.lua says of lines follows the answer to the last caller of an ask, and to each booking in a line.
-- A byte LATER ends the reply if the script has stopped before the last decision, but not before the first: it stops when
-- it has listed, made or moved more than MOST_WORK entries, because other callers of the server wait for it.
--
-- BOOK and WITHDRAW are for buckets, gates and cycles alone. WITHDRAW gives units of a booking back, which come with a
-- negative cost: all of the newest, and otherwise what the limit permits. Like an UNDO, the engine's own brings back
-- nothing that flowed back after the instant.
--
-- RENEW is for slots alone. It gives the units of the identity a new lease, and is REFUSED if that identity no longer
-- holds them.
--
-- script.go replaces the names in capitals with numbers and bytes.
--
-- Units: all numbers are little-endian doubles that hold whole numbers. Doubles are exact to
-- 2^53, C code reads and writes them in one call, and they keep states as short as decimal text
-- of that size. Instants and waits are whole us. A fraction of a us is a pair of whole us and a
-- rest in 1/den us. Instants are below 2^52 us (the year 2112), counts at most 2^53 (limits 1e9),
-- periods below 2^45 us (366 days), and times ahead of now at most 2^51 us. No product here
-- exceeds 2^53, except where it then only saturates.
--
-- A refusal writes nothing, except in a log that counts denied attempts, and a bucket that it has
-- converted to a faster rate. One MGET reads every
-- state before the first decision, and the writes follow the last one. So an error in between has
-- written nothing.
--
-- The costs here are strings, of which Lua hashes every byte, numbers that Redis turns into text,
-- and the expiry of keys. So a value holds the instant of its key's expiry. While that is late
-- enough, the script only overwrites the value or appends to it.

local pack, unpack_, fmod, floor = struct.pack, struct.unpack, math.fmod, math.floor
local max, min, sub, inf = math.max, math.min, string.sub, math.huge
local args, keys, call = ARGV[1], KEYS, redis.call

local now = ARGV[2] and tonumber(ARGV[2])
if not now then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end

local kinds, mask = {}, unpack_('<H', args)
-- special is what only an UNDO, BOOK or WITHDRAW needs:
-- found       the instant of an identified take
-- taken, past for an undo: the instant of the undone take or booking, and how long ago it was; for a cancelled
--             booking the instant, and nil
-- due, vacant of a BOOK: its instant, and when there is space. Limits are asked WHEN first, and raise both.
-- given       a WITHDRAW is being read
-- It is one table because each local that a function shares costs every call that creates the function.
local special
local stored, behind = {}, #args -- where the decisions end
if mask % (2 * LONG_KEYS) < LONG_KEYS then
  if #keys > 1 then stored = call('MGET', unpack(keys)) end
else -- of a long value, keep the name and the length
  local count, short, places = unpack_('<H', args, behind - 1), {}, {}
  behind = behind - 2 - 2 * count
  for i = 1, count do
    local key = unpack_('<H', args, behind + 2 * i - 1)
    local bytes = redis.pcall('STRLEN', keys[key])
    if type(bytes) == 'number' and bytes >= LONG_BYTES then stored[key] = { name = keys[key], bytes = bytes } end
  end
  for key = 1, #keys do
    if not stored[key] then short[#short + 1], places[#places + 1] = keys[key], key end
  end
  if #short > 0 then
    for i, value in ipairs(call('MGET', unpack(short))) do stored[places[i]] = value end
  end
end
-- MGET also says that a key does not exist if its value is not a string, and a write would replace that value.
for key = 1, #keys do
  if not stored[key] then
    local value = redis.pcall('GET', keys[key])
    if type(value) == 'table' then
      if not string.find(value.err, 'WRONGTYPE', 1, true) then return value end
      value = FOREIGN
    end
    stored[key] = value
  end
end
if mask % (2 * EARLIER) >= EARLIER then
  local p, stop = behind - 3 - unpack_('<I4', args, behind - 3), behind - 4
  mask, behind, stored.earlier = mask - EARLIER, p - 1, {}
  while p <= stop do
    local key, place, name
    key, place, name, p = unpack_('<HBHc0', args, p)
    local old = redis.pcall('GETRANGE', name, '0', '0')
    if type(old) == 'string' and old ~= '' then stored[key], stored.earlier[key] = '\0', pack('<BB', place, string.byte(old)) end
  end
end
ALONES
-- since is when this process of the server was first seen, if ARGV[4] asks for it. Earlier, its
-- memory may have been lost, or may lack what was not replicated. The last key holds since, the
-- run id of the process, and in a cluster the id of its node.
local since
if ARGV[4] then
  local id = string.match(call('INFO', 'server'), 'run_id:(%x+)')
  local kept = stored[#keys]
  if kept == FOREIGN then return { err = 'WRONGTYPE the value of key ' .. keys[#keys] .. ' is not a string' } end
  if kept and sub(kept, 9, 48) == id then
    since = unpack_('<d', kept)
  else
    since = now
    local node, nodes = redis.pcall('CLUSTER', 'MYID'), nil
    if type(node) ~= 'string' then node = '' end
    -- A slot that has moved brings its states. Its old node is a different one, and still
    -- a master with slots. After a failover the old node has none.
    local was = kept and sub(kept, 49) or ''
    if was ~= '' and node ~= '' and was ~= node then nodes = redis.pcall('CLUSTER', 'NODES') end
    if type(nodes) == 'string' then
      local flags = string.match('\n' .. nodes, '\n' .. was .. ' %S+ (%S+) %S+ %S+ %S+ %S+ %S+ [%d%[]')
      if flags and string.find(flags, 'master') and not string.find(flags, 'fail') then since = unpack_('<d', kept) end
    end
    call('SET', keys[#keys], pack('<d', since) .. id .. node)
  end
end

-- lasts returns the expiry of a key whose state matters until need, and returns it again if the
-- key has to be given it. till is its current expiry, 0 for a new key. A new key expires with its
-- state. A key that is written again gets half as much time again, so that its expiry need not
-- move with each write.
local function lasts(till, need)
  if now < need and need <= till and (till < inf or need == inf) then return till end
  if till > 0 and need > now then need = need + floor((need - now) / 2) end
  return need, need
end

-- A kind of limit is two or three functions. The first reads the parameters of a part and returns
-- the position behind them. The second decides by these parameters. It is given the state (false
-- if there is none), the op, and the pending tail to append to the state, if there is one. It
-- returns whether the cost fits (nil if the state is unreadable) and the reply. If the state
-- changes, it also returns the new state with the second result of lasts, and the text to append,
-- or only that text. The third, if there is one, reads the parameters in which a repeated part
-- differs. UNDO removes what a take wrote at the instant taken, as far as the state still shows
-- it. It never leaves a state better than without that take.
--
-- Each kind has its own file. The script creates it only if it occurs: creating them all would
-- cost as much as deciding.
local makers = {} -- of further functions of a kind, for cell.lua
local NONE = '\0' -- the reply for a value that does not exist
local work = 0 -- entries read, made or moved one by one; 256 bytes of a text that is copied count as one
local share, convert -- what rarely returns of several.lua and change.lua
local states, tails, ends, state, change, withheld -- used by batches in loop.lua
