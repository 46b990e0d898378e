package resp

import (
	"hash/maphash"
	"sync/atomic"
)

// texts keeps keys that came before, so that a busy key needs no memory at its next command. Keys share pairs of places.
type texts struct {
	kept [1 << 15][2]atomic.Pointer[string] // the newer one first
}

// maxText bounds the bytes of a key that is kept.
const maxText = 128

var seed = maphash.MakeSeed()

// text returns the bytes as a string.
func (t *texts) text(b []byte) string {
	if len(b) > maxText {
		return string(b)
	}
	pair := &t.kept[maphash.Bytes(seed, b)%uint64(len(t.kept))]
	for i := range pair {
		if known := pair[i].Load(); known != nil && *known == string(b) {
			return *known
		}
	}
	s := string(b)
	pair[1].Store(pair[0].Swap(&s))
	return s
}
