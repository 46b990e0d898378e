package override

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Each change of the hash has a stamp: microseconds by the clock of Redis, and more than any stamp that the hash has or
// that the daemon has seen. The version is that of the last change, so it never repeats, also not after a loss of data.
// The value of an entry is the stamp of its last change, a space and the entry as JSON. A removed entry leaves its stamp
// for a while, so that a daemon can tell it from a lost one, and the later of two changes wins.
const stampLua = `
local key = KEYS[1]
local function stamp(seen)
  local t = redis.call('TIME')
  local last = tonumber(redis.call('HGET', key, 'version') or 0)
  local made = string.format('%.0f', math.max(t[1] * 1000000 + t[2], last + 1, seen + 1))
  redis.call('HSET', key, 'version', made)
  return made
end
`

// versionField is the field of the version. The names of entries are JSON lists.
const versionField = "version"

// changeScript sets or removes an entry.
//
//	KEYS[1]  the hash
//	ARGV     the last version seen, the field, the entry or "" to remove it, the largest number of entries
//	reply    the stamp of the change, or 0 if there is no room
var changeScript = rueidis.NewLuaScript(stampLua + `
local seen, field, value, most = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local function holds(text) return text and string.find(text, ' {', 1, true) end
local function entries()
  local n = 0
  for _, text in ipairs(redis.call('HVALS', key)) do
    if holds(text) then n = n + 1 end
  end
  return n
end
if value ~= '' and redis.call('HLEN', key) > most and not holds(redis.call('HGET', key, field)) and entries() >= most then
  return 0
end
local made = stamp(seen)
redis.call('HSET', key, field, made .. ' ' .. value)
return tonumber(made)`)

// restoreScript sets fields without a later change in the hash.
//
//	KEYS[1]  the hash
//	ARGV     the last version seen, and the fields with their values
//	reply    how many are set
var restoreScript = rueidis.NewLuaScript(stampLua + `
local function stampOf(text) return tonumber(string.match(text or '', '^%d+') or 0) end
local set = 0
for i = 2, #ARGV, 2 do
  if stampOf(redis.call('HGET', key, ARGV[i])) < stampOf(ARGV[i + 1]) then
    redis.call('HSET', key, ARGV[i], ARGV[i + 1])
    set = set + 1
  end
end
if set > 0 then stamp(tonumber(ARGV[1])) end
return set`)

// cleanScript removes fields that have not changed.
//
//	KEYS[1]  the hash
//	ARGV     the fields with their values
//	reply    0
var cleanScript = rueidis.NewLuaScript(`
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then redis.call('HDEL', KEYS[1], ARGV[i]) end
end
return 0`)

// keptFor is how long the field of an entry stays after it is removed or has ended: the clocks of daemons differ, and a
// daemon that was away for less than half of it may restore what it knows.
const keptFor = time.Minute

// field is the value of a field.
type field struct {
	stamp int64
	text  string
	entry *Entry // nil if it is removed
}

func newField(stamp int64, content string, e *Entry) field {
	return field{stamp, strconv.FormatInt(stamp, 10) + " " + content, e}
}

// past reports whether the entry had ended, or was removed, for keptFor when the hash had a version.
func (f *field) past(version int64) bool {
	if f.entry == nil {
		return time.Duration(version-f.stamp)*time.Microsecond > keptFor
	}
	return time.Since(f.entry.Until) > keptFor
}

// field is the name of a target's field.
func (p target) field() (string, error) {
	parts := []any{p.rule, p.key, p.prefix}
	if p.mode {
		parts = append(parts, "mode")
	}
	name, err := json.Marshal(parts)
	return string(name), err
}

// stored is the content of the hash.
type stored struct {
	version int64 // 0 if it is empty
	fields  map[string]field
}

// parseStored reads the hash, and counts the fields that it cannot read.
func parseStored(texts map[string]string) (all stored, unread int) {
	all.fields = make(map[string]field, len(texts))
	for name, text := range texts {
		switch name {
		case versionField:
			all.version, _ = strconv.ParseInt(text, 10, 64) // our own number
			continue
		case secretField:
			continue
		}
		at, content, _ := strings.Cut(text, " ")
		stamp, err := strconv.ParseInt(at, 10, 64)
		var e *Entry
		if err == nil && content != "" {
			e = new(Entry)
			err = json.Unmarshal([]byte(content), e)
		}
		if err != nil {
			unread++
			continue
		}
		all.fields[name] = field{stamp, text, e}
	}
	return all, unread
}

func (s *stored) entries() (entries []Entry) {
	for _, f := range s.fields {
		if f.entry != nil {
			entries = append(entries, *f.entry)
		}
	}
	return entries
}
