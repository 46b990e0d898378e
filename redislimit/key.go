package redislimit

import (
	"strconv"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
)

// A key is PREFIX:{LANE}:RULE:LIMIT:KEY. The prefix has no braces, so {LANE} is the hash tag of a cluster. RULE and KEY
// are escaped (escape.go) and LIMIT is letters, digits and points, so two keys never collide. LIMIT is empty for the value
// that holds the states of fixed size. The format of a value may change, and its key never: other versions find every
// value, and refuse those that they cannot read.
//
// Each value begins with the version of its format in the high four bits; the low four are 0, or the form of the entries
// of a log or of slots.
const (
	formatVersion = 5
	formatByte    = formatVersion << 4
)

// mostStrangers bounds the states in one value of limits that the writer's rule does not have.
const mostStrangers = 16

// keys returns the names of what an engine stores.
type keys struct {
	lanes uint64
	heads []string // PREFIX:{LANE}: of each lane
}

func newKeys(prefix string, lanes int) keys {
	k := keys{lanes: uint64(lanes), heads: make([]string, lanes)}
	for lane := range k.heads {
		k.heads[lane] = prefix + ":{" + strconv.Itoa(lane) + "}:"
	}
	return k
}

// lane returns the lane of a place: FNV-1a, mixed, because the low bits decide. Every process must compute the same
// lane.
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

// laneOf returns the lane of a request.
func (k *keys) laneOf(q *weir.Request) int {
	if q.Colocation != "" {
		return k.lane(q.Colocation)
	}
	return k.lane(q.Key)
}

// name returns the key of a state.
func (k *keys) name(lane int, state, key string) string {
	name := make([]byte, 0, len(k.heads[lane])+len(state)+len(key))
	return rueidis.BinaryString(k.append(name, lane, state, key))
}

func (k *keys) append(to []byte, lane int, state, key string) []byte {
	return appendEscaped(append(append(to, k.heads[lane]...), state...), key)
}

// identity returns the key of the identity of a decision with a fingerprint. It has an empty rule, so no state has it.
func (k *keys) identity(lane int, fingerprint, name string) string {
	return k.name(lane, ":"+fingerprint+":", name)
}

// server returns the key that stores which server has the states of a lane. It has no limit, so no state has it.
func (k *keys) server(lane int) string {
	return k.heads[lane] + "server"
}

// probe returns another key of a lane that no state has.
func (k *keys) probe(lane int) string {
	return k.heads[lane] + "probe"
}
