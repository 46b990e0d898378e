-- Decides a batch of independent decisions in order, each of one part or
-- several, all or nothing. A part is one limit of one key.
--
-- KEYS     the distinct state keys of the batch
-- ARGV[1]  the decisions, packed as below
-- ARGV[2]  the instant in us since the epoch; none for the server's TIME
-- ARGV[3]  ms that a key outlives its state; none for 0
-- ARGV[4]  if a server that is new is to be denied: for each key the us for which,
--          as doubles; the last key is then the one that remembers the server
--
-- Before the decisions is one u8, whose bits are the kinds that occur; bit 0 if a
-- decision has several parts, and bit 6 if one is UPTO. A decision: op u8 (PEEK,
-- TAKE, RECORD, RESET, UNDO or UPTO), parts u16, if it is UNDO the instant of what
-- is undone, and if it is UPTO how many times it takes the costs at most: 1 or
-- more, and no more than a fresh key admits. A part: kind
-- u8, index into KEYS u16, then what its kind reads below (nothing, if the op is
-- RESET). Or, for one part that asks what the decision before did, of one part
-- too: AGAIN u8, index into KEYS u16, and of slots the identity.
--
-- Reply: one string. The instant as a double, with ARGV[4] also the one since
-- which the server is known, then for each decision, if it is UPTO, how many times
-- it took the costs, and the rest is as of a TAKE; a flag u8 (REFUSED, ADMITTED,
-- or UNREADABLE: a state is none, and nothing was done) and, unless it is
-- UNREADABLE or the op is RESET, for each part: of buckets, windows and cycles
-- the state before the decision, as it is stored; of logs, gates and slots four
-- doubles: the wait before, the wait after a write, the room and the wait for the
-- capacity, or only the last two of a TAKE that is admitted, which are then those
-- after it.
--
-- The names in capitals stand for numbers and bytes, which script.go puts in.
--
-- All numbers are little-endian doubles that hold whole numbers: doubles are
-- exact to 2^53, they are read and written by C code in one call, and states
-- stay as short as decimal text of that size. Instants and waits are whole us;
-- a fraction of a us is a pair of whole us and a rest in 1/den us. Instants are
-- below 2^52 us (the year 2112), counts at most 2^53 (1e9 if they are limits),
-- periods below 2^45 us (366 days), and what lies ahead of now at most 2^51 us.
-- No product here exceeds 2^53, save where it then only saturates.
--
-- A refusal writes nothing, save a log that counts what is denied. Every state
-- is read by one MGET before the first decision and written after the last, so
-- that an error in between has written nothing.
--
-- What costs time here is strings, of which Lua hashes every byte, numbers that
-- Redis turns into text, and the ends of keys. So a state begins with the instant
-- to which its key lives, and as long as that is enough, only the state is
-- written over the old one, or what is new behind it.

local pack, unpack_, fmod, floor = struct.pack, struct.unpack, math.fmod, math.floor
local max, min, sub, inf = math.max, math.min, string.sub, math.huge
local args, keys, call = ARGV[1], KEYS, redis.call

local now = ARGV[2] and tonumber(ARGV[2])
if not now then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end

local taken -- by an undo: the instant of what it undoes
local stored = call('MGET', unpack(keys))
-- since is when this process of the server was first seen, if anybody asks: its
-- memory may have been lost before, or lack what was not replicated. The last key
-- holds since, the run id of the process, and in a cluster the id of its node.
local since
if ARGV[4] then
  local id = string.match(call('INFO', 'server'), 'run_id:(%x+)')
  local kept = stored[#keys]
  if kept and sub(kept, 9, 48) == id then
    since = unpack_('<d', kept)
  else
    since = now
    local node, nodes = redis.pcall('CLUSTER', 'MYID'), nil
    if type(node) ~= 'string' then node = '' end
    -- A slot that has moved brings its states. Its old node is another one, and
    -- still a master with slots; after a failover it has none.
    local was = kept and sub(kept, 49) or ''
    if was ~= '' and node ~= '' and was ~= node then nodes = redis.pcall('CLUSTER', 'NODES') end
    if type(nodes) == 'string' then
      local flags = string.match('\n' .. nodes, '\n' .. was .. ' %S+ (%S+) %S+ %S+ %S+ %S+ %S+ [%d%[]')
      if flags and string.find(flags, 'master') and not string.find(flags, 'fail') then since = unpack_('<d', kept) end
    end
    call('SET', keys[#keys], pack('<d', since) .. id .. node)
  end
end

-- lasts is the instant to which a key lives whose state matters until need, and
-- the same again if the key does not know it yet. It lived until till; 0 if it is
-- new, and then it ends when its state does. One that is written again gets
-- half as much again, so that its end need not move with each write.
local function lasts(till, need)
  if now < need and need <= till and (till < inf or need == inf) then return till end
  if till > 0 and need > now then need = need + floor((need - now) / 2) end
  return need, need
end

-- A kind of limit is two functions. The first reads the parameters of a part
-- and returns the position behind them. The second decides by them, given
-- the state (false if there is none), the op, and what is to be appended to the
-- state, if anything. It returns whether the cost fits (nil: the state could
-- not be read), the reply, and if the state changes: the new one and what lasts
-- told of it, and what is to be appended, or only this. A third
-- function, if there is one, reads what differs in a part of the same parameters.
-- To undo is to take back what a take wrote at the instant taken, as if it had
-- never been, where that can still be told; it never makes a state better than
-- that.
--
-- Each kind is in a file of its own, and made only if it occurs: making them all
-- would cost as much as deciding.
local kinds, mask = {}, string.byte(args)
local states, tails, ends, state, change, withheld -- for batches, see there
