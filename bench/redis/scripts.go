package main

// bareScript is the shortest useful GCRA script, as a user would write it. KEYS holds a key, ARGV the unit and the
// burst in us. It replies with 0 or 1 and how far the key is ahead of the time, in us.
const bareScript = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local tat = tonumber(redis.call('GET', KEYS[1]) or now)
if tat < now then tat = now end
local new = tat + ARGV[1]
if new - now > tonumber(ARGV[2]) then return {0, tat - now} end
redis.call('SET', KEYS[1], new, 'PX', math.ceil((new - now) / 1000))
return {1, new - now}`

// bareBatch does the same for many distinct keys, which it reads with one MGET.
const bareBatch = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local unit, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local tats = redis.call('MGET', unpack(KEYS))
local reply = {}
for i, key in ipairs(KEYS) do
  local tat = tonumber(tats[i] or now)
  if tat < now then tat = now end
  local new = tat + unit
  if new - now > burst then
    reply[2 * i - 1], reply[2 * i] = 0, tat - now
  else
    redis.call('SET', key, new, 'PX', math.ceil((new - now) / 1000))
    reply[2 * i - 1], reply[2 * i] = 1, new - now
  end
end
return reply`
