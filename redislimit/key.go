package redislimit

import (
	"strconv"
	"strings"
)

// A key is PREFIX:2:{LANE}:RULE NUL LIMIT NUL KEY. The prefix has no braces, so
// {LANE} is the hash tag of a cluster; RULE and LIMIT hold no NUL; and KEY is the
// rest: no two of them meet, whatever bytes they hold. 2 is the version of the
// stored format: another version is another key.
const formatVersion = "2"

// keys names what an engine stores.
type keys struct {
	prefix string
	lanes  uint64
}

// lane is where a place lives: FNV-1a of it, mixed, since the low bits decide.
// Every process has to find the same.
func (k *keys) lane(place string) int {
	h := uint64(14695981039346656037)
	for i := range len(place) {
		h = (h ^ uint64(place[i])) * 1099511628211
	}
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15
	h ^= h >> 32
	return int(h % k.lanes)
}

// name is the key of a state.
func (k *keys) name(lane int, state, key string) string {
	var digits [8]byte
	number := strconv.AppendInt(digits[:0], int64(lane), 10)
	var b strings.Builder
	b.Grow(len(k.prefix) + len(":"+formatVersion+":{") + len(number) + len("}:") + len(state) + len(key))
	b.WriteString(k.prefix)
	b.WriteString(":" + formatVersion + ":{")
	b.Write(number)
	b.WriteString("}:")
	b.WriteString(state)
	b.WriteString(key)
	return b.String()
}

// server is the key that remembers which server keeps the states of a lane: no
// state has it, since it holds no NUL.
func (k *keys) server(lane int) string {
	return k.prefix + ":" + formatVersion + ":{" + strconv.Itoa(lane) + "}:server"
}

// probe is a key of a lane that no state has either.
func (k *keys) probe(lane int) string {
	return k.prefix + ":" + formatVersion + ":{" + strconv.Itoa(lane) + "}:probe"
}
