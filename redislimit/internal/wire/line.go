package wire

import (
	"math"
	"strings"
	"time"

	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/stored"
)

// What became of a caller in line: see script/line.lua.
const (
	OutcomeTurn   = iota // the decision decides
	OutcomeDry           // a rate refuses
	OutcomeStands        // slots refuse, or older callers want them
	OutcomeHolds         // an earlier question took its slots
)

// LineHeader is what an ask says before its callers.
type LineHeader struct {
	Process string
	Hears   Hearing
	Grace   time.Duration
	Callers int
	Keys    []LineKey
}

// Hearing is how a process hears signals.
type Hearing uint8

const (
	Deaf Hearing = iota
	ByPublish
	ByShard // SPUBLISH
)

// LineKey is one line of an ask: what the process says of it, and the answer.
type LineKey struct {
	enginekit.LineKey
	Key  string
	Peek Decision // of the slots
	Full bool     // the line has no room for the process
}

// LineCaller is a caller in line, and the answer.
type LineCaller struct {
	Header *LineHeader // with the first caller of an ask
	Last   *LineHeader // with the last one
	Nobody bool        // the ask has no callers
	Since  time.Time
	Again  bool // it may hold its slots already
	Stays  bool
	Lease  uint64
	Rates  []LineRate
	Slots  []LineSlots

	Outcome  byte
	Wait     float64 // us; of one whose turn it is: how many others wait for its rates
	Refusing uint32  // a bit for each of slots
}

// LineRate is the line of a rate, its first part in the decision, and how long the caller's cost takes there.
type LineRate struct {
	Key  string
	At   int
	Unit time.Duration
}

// LineSlots are the slots of one line that a caller takes.
type LineSlots struct {
	At   int // the line in the ask
	Cost int64
	Part int
}

// LineBooking is a caller that books, and the answer.
type LineBooking struct {
	Process   string
	Key       string
	Since     time.Time
	Unit, Way time.Duration

	Retry float64 // us; 0 if it was booked
}

// Line returns the key of the line of a part's callers, which differs from that of its state in the name of the limit.
func (p *Part) Line() string {
	at := strings.IndexByte(p.Key, '}') + len("}:")
	return p.Key[:at] + p.Limit.Line + p.Key[at+len(p.Limit.State):]
}

// freed returns the slots that a decision may free, as decisions that peek.
func (d *Decision) freed() (slots []Decision) {
	for i := range d.Parts {
		p := &d.Parts[i]
		if d.Unsignalled || p.Limit.Kind != stored.KindSlots || len(slots) == math.MaxUint8 {
			continue
		}
		if d.Op == OpReset || d.Op == OpUndo || d.Op == OpRecord && p.Cost < 0 {
			peek := *p
			peek.Cost = 0
			slots = append(slots, Decision{Op: OpPeek, Parts: []Part{peek}})
		}
	}
	return slots
}

// MostProcesses bounds the entries in one line.
const MostProcesses = 1024
