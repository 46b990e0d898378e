package wire

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/weirflow/weir/redislimit/internal/stored"
)

// wakes names the slots that a decision may free before it: the script publishes their keys, so that processes whose callers
// wait for them ask again. It reports whether there are some.
func (b *Batch) wakes(d *Decision) bool {
	var freed []int
	for i := range d.Parts {
		p := &d.Parts[i]
		if p.Limit.Kind == stored.KindSlots && (d.Op == OpReset || d.Op == OpUndo || d.Op == OpRecord && p.Cost < 0) && len(freed) < math.MaxUint16 {
			freed = append(freed, b.key(p))
		}
	}
	if len(freed) == 0 {
		return false
	}
	b.Args[withWakes] = 1
	if b.Shards {
		b.Args[withWakes] = 2
	}
	b.word("wakes", len(freed))
	for _, key := range freed {
		b.Args = binary.LittleEndian.AppendUint16(b.Args, uint16(key))
	}
	return true
}

// Woken returns what the script publishes when units of the part are freed: its key without what all keys of its lane have.
func (p *Part) Woken() string { return p.Key[strings.IndexByte(p.Key, '}')+len("}:"):] }
