package resp

import (
	"hash/maphash"
	"sync/atomic"
)

// texts keeps keys that came before, so that a busy key needs no memory at its next command.
type texts struct {
	kept [1 << 14]atomic.Pointer[string]
}

// maxText bounds the bytes of a key that is kept.
const maxText = 128

var seed = maphash.MakeSeed()

// text returns the bytes as a string.
func (t *texts) text(b []byte) string {
	if len(b) > maxText {
		return string(b)
	}
	at := &t.kept[maphash.Bytes(seed, b)%uint64(len(t.kept))]
	if known := at.Load(); known != nil && *known == string(b) {
		return *known
	}
	s := string(b)
	at.Store(&s)
	return s
}
