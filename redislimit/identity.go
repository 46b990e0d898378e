package redislimit

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
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
	add(uint64(cmp.Or(d.first, d.op)))
	add(uint64(cmp.Or(d.most, d.times)))
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
	if o := cmp.Or(d.first, d.op); identity != "" && (o == opTake || o == opUpTo || o == opRecord) && len(d.parts) > 0 {
		d.identity = e.keys.identity(d.parts[0].lane, d.fingerprint(), identity)
	}
}

// takesAgain makes a take up to wanted times, of up to fresh times now, recognise its identity whatever the limit was when
// it was made.
func (d *decision) takesAgain(wanted, fresh int64) {
	switch {
	case d.op == opPeek && wanted > 1:
		d.first = opUpTo
	case d.op == opPeek:
		d.first = opTake
	case wanted > 1:
		d.op, d.times = opUpTo, fresh
	}
}

// leased gives slots that are reserved with an identity a lease that follows from it, so that a repeated call has the
// same slots.
func leased(c weir.Call) weir.Call {
	if c.Identity == "" || c.Lease != 0 {
		return c
	}
	h := sha256.New()
	for i := range c.Requests {
		q := &c.Requests[i]
		if q.Rule == nil {
			return c // a take refuses it
		}
		fmt.Fprintf(h, "%q %q %d %q ", q.Rule.Name(), q.Key, q.Cost, c.Identity)
	}
	c.Lease = binary.LittleEndian.Uint64(h.Sum(nil)) | 1
	return c
}

// keepAnswer makes the answer to a repeated take an admission, though the limit may have become smaller since the first.
func (d *decision) keepAnswer() {
	for i := range d.parts {
		if m := &d.parts[i].measure; d.admitted {
			m.Before, m.Cost = 0, min(m.Cost, m.Capacity)
		}
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
var errUndone = &Error{Reason: Undone, Counted: weir.CountedNo, Err: errors.New("a decision with this identity was undone, or its slots were released: use a new identity")}
