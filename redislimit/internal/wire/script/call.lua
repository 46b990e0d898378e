-- Decides a batch of decisions in order. Each has one or more groups, and is all or nothing. A group is the limits whose
-- states are in one value: those of one rule and key with states of fixed size, or one log, gate, Concurrency or ban.
--
-- The script is the files of this folder in the order of script.go. This one reads the call, each kind of group has a file,
-- and batch.lua decides and writes. A function costs each call that creates it, and so does each local that functions share.
-- So a file creates its functions only if the call needs them, and some of them at their first use.
--
-- KEYS     the distinct keys of the batch
-- ARGV[1]  what occurs, as named below, a u8 each; and the decisions
-- ARGV[2]  the instant in us since the epoch; '' for the server's TIME
-- ARGV[3]  ms that a key outlives its state
-- ARGV[4]  only if a new server is denied: how long each decision is denied, in us, as doubles. The last key is then the one
--          that remembers the server
-- ARGV[5]  the indexes in KEYS of long logs, u16 each
-- The last of them may be absent.
--
-- A decision: the length of its op, u8, and the op; how many groups, u16; for an undo the instant at which the undone take was
-- written, and how long ago its caller sent it at least, in us, or -1 if the caller settles it; for an upto the most times that it takes the costs: at least 1,
-- and at most what a fresh key admits; for a book the longest time until the booked instant, in us; for a withdraw the booked
-- instant, and how long ago it was at least if the engine undoes the booking, in us, or -1 if its caller cancels it; then its
-- groups. No cost of a take or book is above the capacity of its limit.
-- The ops are peek, take, record, reset, undo, upto, renew, book and withdraw. A book asks limits 'when' first.
-- A group: its letter; index into KEYS u16; and unless the op is reset, what the file of its kind reads.
-- A decision with an identity follows "identified" like an op, or "final" if the identity names a refusal, too; the index of its key
-- in KEYS u16; and its own length u32. If the identity is known, the answer is the first one again. An undo with the identity of a take undoes it at the instant that the
-- identity knows, or makes a later take with it UNDONE.
-- A decision that may free slots follows "wakes" like an op; how many keys it frees slots of, u16; and their indexes in KEYS, u16
-- each. With an identity too, that comes first. The script publishes these keys, without the prefix and lane that their channel
-- has.
-- Decisions of one group that repeat the previous one, of one group too, for other keys: "again" like an op; the first one's
-- index into KEYS u16; how many there are, u16; by how much the index grows from one to the next, u8.
--
-- Reply: one string. It holds the instant as a double, with ARGV[4] also the instant since which the server is known, and then
-- the answer to each decision. An answer is:
-- - with an identity, the instant of the decision as a double, half a us later if the answer is the first one again, and -2^52
--   less it if that was a refusal that counted towards a ban, or a final one. If it was
--   UNDONE, or slots that it took were given back, that is inf, and nothing follows.
-- - for upto, how many times it took the costs; the rest is as for a take.
-- - for book, the instant at which all limits admit the costs, and the instant from which all have space for a booking, as
--   doubles. It is admitted if the first is soon enough and the second is now.
-- - a byte: REFUSED, ADMITTED, or UNREADABLE if a value cannot be read and nothing was done. Then follow its index in KEYS, u16;
--   and its first byte, which is that of FOREIGN if the value is not a string.
-- - each group, unless the byte is UNREADABLE or the op is reset. For states of fixed size it is the value before the decision with the
--   states of that head, or a byte 0 if there was none. For logs, gates, slots and bans it is four doubles: the wait before, the wait
--   after a write (at a refused book: for space for it), the room, and the wait for the whole capacity. An admitted take has only
--   the last two, measured after it, but of a ban all four. A room of -1 says that a log is full and the record has written nothing.
-- If the next decision needs the boundaries of a quota around another instant, ELSEWHERE and that instant, a double, end the
-- reply. That decision has done nothing, and those behind it are left to another call, too.
-- A byte LATER ends the reply if the script has stopped before the last decision, but not before the first: it stops when it has
-- listed, made or moved more than MOST_WORK entries, because other callers of the server wait for it.
--
-- book and withdraw are for buckets, gates and cycles alone. A withdraw gives units of a booking back, which come with a
-- negative cost: all of the newest, and otherwise what the limit permits. An undo or a withdraw brings back nothing but what
-- still counts of that take, and of a bucket, unless its caller asks for it, nothing that flowed back after the instant.
-- renew is for slots alone. It gives the units of the identity a new lease, and is refused if that identity no longer holds
-- them.
--
-- Units: all numbers are little-endian doubles that hold whole numbers. Doubles are exact to 2^53, C code reads and writes them
-- in one call, and they keep states as short as decimal text of that size. Instants and waits are whole us. A fraction of a us is
-- a pair of whole us and a rest in 1/den us. Instants are below 2^52 us (the year 2112), counts at most 2^53 (limits 1e9), periods
-- below 2^45 us (366 days), and times ahead of now at most 2^51 us. No product here exceeds 2^53, except where it then only
-- saturates.
--
-- A refusal writes nothing, except in a log that counts denied attempts, in a ban that counts it, and a bucket that it has
-- converted to a faster rate.
-- One MGET reads every state before the first decision, and the writes follow the last one. So an error in between has written
-- nothing.
local pack, unpack_, sub, floor, fmod = struct.pack, struct.unpack, string.sub, math.floor, math.fmod
local max, min, inf = math.max, math.min, math.huge
local args, keys, call = ARGV[1], KEYS, redis.call
local VERSION, FOREIGN, UNDONE = '\16', '\255', pack('<d', inf)
local REFUSED, ADMITTED, UNREADABLE, LATER = '\0', '\1', '\2', '\3'
local MOST_WORK, LONG_BYTES = 1000, 4096

local now = tonumber(ARGV[2] or '')
if not now then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local buckets, windows, cycles, quotas, firsts, logs, slots, bans, uptos, identities, wakes, sets, resets, pos = unpack_('<BBBBBBBBBBBBB', args)

-- stored has the values, of long logs only the name and the length. MGET also says that a key does not exist if its value is
-- not a string, and a write would replace that value.
local stored, long = {}, ARGV[5] or ''
for p = 1, #long, 2 do
  local key = unpack_('<H', long, p)
  local bytes = redis.pcall('STRLEN', keys[key])
  if type(bytes) == 'number' and bytes >= LONG_BYTES then stored[key] = { name = keys[key], bytes = bytes } end
end
if long == '' and #keys > 1 then stored = call('MGET', unpack(keys)) end
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

-- since is when this process of the server was first seen, if ARGV[4] asks for it. Earlier, its memory may have been lost, or
-- may lack what was not replicated. The last key holds since, the run id of the process, and in a cluster the id of its node.
local since
if ARGV[4] and ARGV[4] ~= '' then
  local id = string.match(call('INFO', 'server'), 'run_id:(%x+)')
  local kept = stored[#keys]
  if kept == FOREIGN then return { err = 'WRONGTYPE the value of key ' .. keys[#keys] .. ' is not a string' } end
  if kept and sub(kept, 9, 48) == id then
    since = unpack_('<d', kept)
  else
    since = now
    local node, nodes = redis.pcall('CLUSTER', 'MYID'), nil
    if type(node) ~= 'string' then node = '' end
    -- A slot that has moved brings its states. Its old node is a different one, and still a master with slots. After a
    -- failover the old node has none.
    local was = kept and sub(kept, 49) or ''
    if was ~= '' and node ~= '' and was ~= node then nodes = redis.pcall('CLUSTER', 'NODES') end
    if type(nodes) == 'string' then
      local flags = string.match('\n' .. nodes, '\n' .. was .. ' %S+ (%S+) %S+ %S+ %S+ %S+ %S+ [%d%[]')
      if flags and string.find(flags, 'master') and not string.find(flags, 'fail') then since = unpack_('<d', kept) end
    end
    call('SET', keys[#keys], pack('<d', since) .. id .. node)
  end
end

-- lasts returns the expiry of a key whose state matters until need, and returns it again if the key has to be given it. till is
-- its current expiry, 0 for a new key. Redis turns the expiry of a key into text and files it, which costs. So a value holds the
-- instant of its key's expiry, and while that is late enough, the script only overwrites the value or appends to it. A new key
-- expires with its state. A key that is written again gets half as much time again, so that its expiry need not move with each
-- write.
local function lasts(till, need)
  if now < need and need <= till and (till < inf or need == inf) then return till end
  if till > 0 and need > now then need = need + floor((need - now) / 2) end
  return need, need
end

-- groups has the kinds of groups by their letters. Such a function is given the position of a group's parameters and perhaps how
-- many times its costs are taken. It returns the function that decides, until the next group is read, and the position behind
-- the group. The second function is given the state (false if there is none), the op, and the pending tail to append to the
-- state, if there is one. It returns whether the cost fits (nil if the state is unreadable) and the reply. If the state changes,
-- it also returns the new state with the second result of lasts, and the text to append, or only that text. An undo removes what
-- a take wrote at the instant special.taken, as far as the state still shows it. It never leaves a state better than without
-- that take.
local groups = {}
-- limits has the kinds of limits of fixed size by their letters. Such a function is given its letter and the same. It returns the
-- function that decides, how many numbers its state has, and the position. The second function is given the op and the numbers.
-- It returns whether the cost fits (nil for numbers that no state has), and if the state changes, the instant until which it
-- matters and its numbers.
local limits = {}
-- special is what only an undo, book or withdraw needs:
-- found       the instant of an identified take
-- taken, past for an undo: the instant of the undone take or booking, and how long ago it was; nil if its caller settles or
--             cancels it
-- due, vacant of a book: its instant, and when there is space. Limits raise both when they are asked.
-- refused     of a book: it is refused. It then peeks, and a bucket that delays it converts its state to a faster rate
-- given       a withdraw is being read
local special
local beyond -- the instant at which a decision needs other boundaries of a quota
local work = 0 -- entries read, made or moved one by one; 256 bytes of a text that is copied count as one

-- The batch, in order: each decision sees what the previous ones changed.
local states, tails, ends = {}, {}, {} -- of each key: a state that differs from the stored one, false to delete; text to append to
-- it; and a new expiry

-- state returns the state of a key after the previous decisions, without its tail. change notes what a decision on it has
-- changed.
local state, change
if sets + uptos + identities > 0 then
  function state(key)
    local s = states[key]
    if s == nil then return stored[key] end
    return s
  end
  function change(key, new, moved, added)
    if new then
      states[key] = new
      if moved then ends[key] = moved end
    end
    if added or new and tails[key] then tails[key] = added end
  end
end

-- broken returns the answer to a decision about a value that this version cannot read.
local function broken(key)
  local s = stored[key]
  if type(s) == 'table' then s = call('GETRANGE', s.name, '0', '0') end
  return UNREADABLE .. pack('<HB', key, string.byte(s or '') or 0)
end

-- What several.lua, upto.lua and identity.lua define.
local several, reset, fitting, recall, remember
