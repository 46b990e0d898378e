package stored

import (
	"encoding/binary"
	"math"
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
	FormatVersion = 1
	FormatByte    = FormatVersion << 4
)

// MostStrangers bounds the states in one value of limits that the writer's rule does not have.
const MostStrangers = 16

// Keys makes the names of the values that an engine stores.
type Keys struct {
	lanes uint64
	Heads []string // PREFIX:{LANE}: of each lane
}

func NewKeys(prefix string, lanes int) Keys {
	k := Keys{lanes: uint64(lanes), Heads: make([]string, lanes)}
	for lane := range k.Heads {
		k.Heads[lane] = prefix + ":{" + strconv.Itoa(lane) + "}:"
	}
	return k
}

// Lane returns the lane of a place: FNV-1a, mixed, because the low bits decide. Every process must compute the same
// lane.
func (k *Keys) Lane(place string) int {
	h := uint64(14695981039346656037)
	for i := range len(place) {
		h = (h ^ uint64(place[i])) * 1099511628211
	}
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15
	h ^= h >> 32
	return int(h % k.lanes)
}

// LaneOf returns the lane of a request.
func (k *Keys) LaneOf(q *weir.Request) int {
	if q.Colocation != "" {
		return k.Lane(q.Colocation)
	}
	return k.Lane(q.Key)
}

// Name returns the key of a state.
func (k *Keys) Name(lane int, state, key string) string {
	name := make([]byte, 0, len(k.Heads[lane])+len(state)+len(key))
	return rueidis.BinaryString(k.Append(name, lane, state, key))
}

func (k *Keys) Append(to []byte, lane int, state, key string) []byte {
	return AppendEscaped(append(append(to, k.Heads[lane]...), state...), key)
}

// Identity returns the key of the identity of a decision with a fingerprint. It has an empty rule, so no state has it.
func (k *Keys) Identity(lane int, fingerprint, name string) string {
	return k.Name(lane, ":"+fingerprint+":", name)
}

// Server returns the key that stores which server has the states of a lane. It has no limit, so no state has it.
func (k *Keys) Server(lane int) string {
	return k.Heads[lane] + "server"
}

// Probe returns another key of a lane that no state has.
func (k *Keys) Probe(lane int) string {
	return k.Heads[lane] + "probe"
}

// PlainBytes are the bytes that stand for themselves in the parts of a key. They have no meaning to a shell, to xargs, in a
// pattern of Redis, or between the parts.
const PlainBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/@+=,"

var plain = func() (table [256]bool) {
	for i := range len(PlainBytes) {
		table[PlainBytes[i]] = true
	}
	return table
}()

// AppendEscaped appends a text with every byte that is not plain as %XX.
func AppendEscaped(to []byte, text string) []byte {
	const digits = "0123456789ABCDEF"
	done := 0
	for i := range len(text) {
		if c := text[i]; !plain[c] {
			to = append(append(to, text[done:i]...), '%', digits[c>>4], digits[c&15])
			done = i + 1
		}
	}
	return append(to, text[done:]...)
}

func Doubles(to []byte, values ...float64) []byte {
	for _, v := range values {
		to = binary.LittleEndian.AppendUint64(to, math.Float64bits(v))
	}
	return to
}
