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
-- A decision: op u8 (0 peek, 1 take, 2 record, 3 reset, 4 undo), parts u16, and
-- if it is undo the instant of what is undone. A part: kind u8, index into KEYS
-- u16, then what its kind reads below (nothing, if the op is reset).
--
-- Reply: one string. The instant as a double, with ARGV[4] also the one since
-- which the server is known, then for each decision a flag u8
-- (0 refused, 1 admitted, 2 a state could not be read and nothing was done) and,
-- unless it is 2 or the op is reset, for each part: of buckets, windows and
-- cycles the state before the decision, as it is stored; of logs, gates and
-- slots four doubles: the wait before, the wait after a write, the room and the
-- wait for the capacity.
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

local pack, unpack_, fmod, floor = struct.pack, struct.unpack, math.fmod, math.floor
local max, min, sub, inf = math.max, math.min, string.sub, math.huge
local args = ARGV[1]
local PEEK, TAKE, RECORD, RESET, UNDO = 0, 1, 2, 3, 4
local MOST_UNITS, MOST_AHEAD = 2^53, 2^51

local now = tonumber(ARGV[2] or '')
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end

local taken -- by an undo: the instant of what it undoes
local states = redis.call('MGET', unpack(KEYS))
-- since is when this process of the server was first seen, if anybody asks: its
-- memory may have been lost before, or lack what was not replicated.
local since
if ARGV[4] then
  local id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  local kept = states[#KEYS]
  if kept and sub(kept, 9) == id then
    since = unpack_('<d', kept)
  else
    since = now
    redis.call('SET', KEYS[#KEYS], pack('<d', now) .. id)
  end
end
local matters = {} -- of the keys that changed: for how long, in us; -1 to delete
local tails = {} -- what was appended to a state, until somebody asks for it
local whole = {} -- the states that are not those stored, not even but for a tail
local REFUSED, ADMITTED, UNREADABLE = '\0', '\1', '\2'

-- A kind of limit is a function of the position of its parameters, the stored
-- state (false if there is none) and the op. It returns the position behind,
-- whether the cost fits (nil: the state could not be read), the reply, and if it
-- changes, the new state, how long it matters, in us, and whether it is not the
-- new state but what to append to the old one. To undo is to take back
-- what a take wrote at the instant taken, as if it had never been, where that can
-- still be told; it never makes a state better than that.
--
-- Each is in a file of its own and made when a part needs it: most batches hold
-- one kind, and making them all would cost as much as deciding.
local kinds = {}
