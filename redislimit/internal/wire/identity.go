package wire

import (
	"cmp"

	"github.com/weirflow/weir/redislimit/internal/stored"
)

// Identify gives a decision that counts something the identity of its caller.
func (d *Decision) Identify(k *stored.Keys, identity string) {
	if o := cmp.Or(d.First, d.Op); identity != "" && (o == OpTake || o == OpUpTo || o == OpRecord) && len(d.Parts) > 0 {
		d.Identity = k.Identity(d.Parts[0].Lane, d.fingerprint(), identity)
	}
}

// TakesAgain makes a take up to wanted times, of up to fresh times now, recognise its identity even if the limit was
// another one when it was made.
func (d *Decision) TakesAgain(wanted, fresh int64) {
	switch {
	case d.Op == OpPeek && wanted > 1:
		d.First = OpUpTo
	case d.Op == OpPeek:
		d.First = OpTake
	case wanted > 1:
		d.Op, d.Times = OpUpTo, fresh
	}
}
