package redislimit

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"strconv"

	"github.com/weirflow/weir"
)

// fingerprint tells decisions with one identity apart, so that a caller that uses an identity for two different
// decisions gets two answers.
func (d *decision) fingerprint() string {
	h := fnv.New64a()
	var number [8]byte
	add := func(n uint64) {
		binary.LittleEndian.PutUint64(number[:], n)
		_, _ = h.Write(number[:])
	}
	add(uint64(d.op))
	add(uint64(d.times))
	for i := range d.parts {
		p := &d.parts[i]
		_, _ = h.Write([]byte(p.key))
		_, _ = h.Write([]byte(p.limit.identity))
		add(uint64(p.cost))
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// identify gives a decision that counts something the identity of its caller.
func (e *Engine) identify(d *decision, identity string) {
	if identity != "" && (d.op == opTake || d.op == opUpTo || d.op == opRecord) && len(d.parts) > 0 {
		d.identity = e.keys.identity(d.parts[0].lane, d.fingerprint()+":"+identity)
	}
}

// newIdentity returns an identity for a part of a take across lanes.
func newIdentity() string { return strconv.FormatUint(rand.Uint64(), 36) }

// undone ends the reading of a decision that an undo has reached before: a take is refused, and an undo has nothing to
// do.
func (d *decision) undone() {
	d.admitted = false
	if d.op != opUndo {
		d.err = errUndone
	}
}

// errUndone is the error of a take whose identity was undone.
var errUndone = &Error{Reason: Undone, Counted: weir.CountedNo, Err: errors.New("a decision with this identity was undone: use a new identity")}
