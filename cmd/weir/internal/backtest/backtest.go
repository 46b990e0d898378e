// Package backtest says what rules files would have done to requests that were logged.
//
// A [Traffic] takes in one [Line] for each request. Each file says at once what it makes of a line: rules.Config.Decide finds the
// rules, keys, limits and costs, as in the daemon, and does not depend on the time. Equal outcomes are kept once, so an event is an
// instant, a client and the number of an outcome for each file. Outcomes that differ only in their keys share a shape (outcome.go).
//
// [Traffic.Report] decides the events in order of time, because several rules decide one request together: weir.Memory
// makes the decisions of the daemon, with the time of the log as its clock (decide.go). A stamp is rarely the instant
// when a daemon would have decided. bounds.go finds the decisions that no instant between the bounds of the stamps
// changes.
package backtest

import (
	"cmp"
	"math"
	"slices"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// File is a configuration to try.
type File struct {
	Name   string
	Config *rules.Config
}

// Line is a request that was logged.
type Line struct {
	At       int64         // the instant of its decision, in nanoseconds since the Unix epoch
	From, To int64         // it was decided at From or later, and before To; both are At if the instant is exact
	Client   []byte        // whose request it is
	Keyed    bool          // Client is a customer, and not an address
	Request  rules.Partial // nil of a recording
	Recorded *Recorded     // nil of other logs
}

// Recorded is a line of a recording: one request of a call that a daemon decided. Further ones of the call follow, with the same
// instant.
type Recorded struct {
	Rule, Key string
	Cost      int64
	Allowed   bool
	Hashed    bool // the key is a hash
}

// Traffic holds requests, and the outcome of each under each file.
type Traffic struct {
	tries    []*try
	subject  subject
	names    *names // the texts of clients and keys
	clients  *numbers
	keyed    []bool // by client: it is a customer, and not an address
	events   []event
	numbers  [][]uint32 // by file: the numbers of the outcomes of the events
	recorded int64      // events of recordings
	exact    bool       // each event is at its instant

	mostEvents, mostOutcomes int
}

// The bounds of the memory of a Traffic: 6 GB of events, and about as much of outcomes.
const (
	mostEvents   = 250_000_000
	mostOutcomes = 1 << 23 // of all files together, and clients; each key and cost makes another
)

// The reasons to leave out a line that a Traffic has no room for. Each completes "the line …".
const (
	whyTooMany  = "comes after 250,000,000 others, the most that are kept"
	whyTooMixed = "comes after 8,388,608 clients and distinct outcomes of rules, the most that are kept"
)

// event is a request. Its bounds are in units of grain before and after the instant.
type event struct {
	at            int64
	before, after uint32
	client        uint32
	recorded      bool
	admitted      bool  // by the daemon, if it is recorded
	more          uint8 // further lines of its call
}

// grain is the unit of bounds: rounded up, they stay bounds.
const grain = 100_000

// New returns a Traffic without requests.
func New(files ...File) *Traffic {
	t := &Traffic{subject: subjectOfFiles(files), names: newNames(), numbers: make([][]uint32, len(files)), exact: true, mostEvents: mostEvents, mostOutcomes: mostOutcomes}
	t.clients = newNumbers(t.names)
	for _, f := range files {
		t.tries = append(t.tries, newTry(f, t.names))
	}
	return t
}

// full returns why no further line is taken in, or "".
func (t *Traffic) full() (why string) {
	kinds := len(t.clients.names)
	for _, try := range t.tries {
		kinds += len(try.outcomes.kept)
	}
	switch {
	case len(t.events) >= t.mostEvents:
		return whyTooMany
	case kinds >= t.mostOutcomes:
		return whyTooMixed
	}
	return ""
}

// Add takes in a line. It returns an error if there are more clients or keys than can be counted.
func (t *Traffic) Add(l *Line) error {
	if l.Recorded != nil {
		if n := len(t.events); t.recorded > 0 && t.events[n-1].at == l.At && t.events[n-1].more < math.MaxUint8 { // another request of the same call
			t.events[n-1].more++
			for _, try := range t.tries {
				try.recorded(l.Recorded)
			}
			return t.note(n - 1)
		}
		t.recorded++
	}
	name, err := t.names.of(l.Client)
	if err != nil {
		return err
	}
	client := t.clients.of(name)
	if int(client) == len(t.keyed) {
		t.keyed = append(t.keyed, l.Keyed)
	}
	e := event{at: l.At, before: grains(l.At - l.From), after: grains(l.To - l.At), client: client}
	if l.Recorded != nil {
		e.recorded, e.admitted = true, l.Recorded.Allowed
	}
	t.events = append(t.events, e)
	t.exact = t.exact && l.From == l.At && l.To == l.At
	for i, try := range t.tries {
		t.numbers[i] = append(t.numbers[i], 0)
		if l.Recorded != nil {
			try.outcome = rules.Outcome{}
			try.recorded(l.Recorded)
		} else {
			try.config.Decide(l.Request, 1, &try.outcome)
		}
	}
	return t.note(len(t.events) - 1)
}

// note notes what the files make of an event.
func (t *Traffic) note(at int) (err error) {
	for i, try := range t.tries {
		if t.numbers[i][at], err = try.number(); err != nil {
			return err
		}
	}
	return nil
}

func grains(ns int64) uint32 { return uint32(min((max(ns, 0)+grain-1)/grain, 1<<32-1)) }

func (e *event) from() int64 { return e.at - int64(e.before)*grain }
func (e *event) to() int64   { return max(e.at+int64(e.after)*grain, e.at+1) }

// cut drops the events outside a span, which may depend on the end of the logs, and returns the number of their lines.
func (t *Traffic) cut(from, to int64) (dropped int64) {
	kept := 0
	for i, e := range t.events {
		if e.at < from || e.at >= to {
			dropped += 1 + int64(e.more)
			continue
		}
		t.events[kept] = e
		for _, numbers := range t.numbers {
			numbers[kept] = numbers[i]
		}
		kept++
	}
	t.events = t.events[:kept]
	for i := range t.numbers {
		t.numbers[i] = t.numbers[i][:kept]
	}
	return dropped
}

// clientsSeen returns the number of clients that have events, and how many of them are customers.
func (t *Traffic) clientsSeen() (n, customers int) {
	seen := make([]bool, len(t.clients.names))
	for i := range t.events {
		if c := t.events[i].client; !seen[c] {
			seen[c] = true
			n++
			if t.keyed[c] {
				customers++
			}
		}
	}
	return n, customers
}

// sort orders the events by time. Those of one instant keep the order of the log.
func (t *Traffic) sort() {
	byTime := func(a, b event) int { return cmp.Compare(a.at, b.at) }
	if slices.IsSortedFunc(t.events, byTime) {
		return
	}
	order := make([]uint32, len(t.events))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(t.events[a].at, t.events[b].at), cmp.Compare(a, b))
	})
	t.events = arranged(t.events, order)
	for i := range t.numbers {
		t.numbers[i] = arranged(t.numbers[i], order)
	}
}

func arranged[T any](all []T, order []uint32) []T {
	to := make([]T, len(all))
	for i, at := range order {
		to[i] = all[at]
	}
	return to
}
