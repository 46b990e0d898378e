// Package replay tries limits on access logs, in virtual time, and searches for limits that would have suited a log. It makes its
// decisions with package weir.
//
// A [Traffic] reads logs. [Traffic.Replay] tries limits on it, [Traffic.Suggest] searches for some, and [Traffic.Holds] tries what
// reservations of work should hold. All go key by key, with the state of one in memory, so that the order of lines does not matter.
// A [Tally] makes the same report of decisions that someone else makes, in order of time.
//
// Every line is either an event or counted as unparsed, with a reason. The types are not safe for concurrent use.
package replay

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/weirflow/weir/internal/accesslog"
)

// Traffic holds the events of access logs: a key and a time each. It needs 16 bytes for each line, and
// about 100 bytes plus the text for each distinct key.
type Traffic struct {
	logs  *accesslog.Reader
	slots []accesslog.Slot // the fields of the key
	cost  []accesslog.Slot // the field of the cost; empty: each cost is 1
	text  []byte           // of a key of several fields

	ids  map[string]uint32
	keys []string // by id

	events      events
	starts      []int // grouped by key: the events from starts[id] to before starts[id+1] are those of a key
	first, last int64 // the earliest and the latest time

	mostEvents, mostKeys int

	full  func() bool // as Until has it, or nil
	ended bool
}

// The bounds of the memory of a Traffic: 4 GB of events, and about as much of keys.
const (
	mostEvents = 250_000_000
	mostKeys   = 1 << 25
)

// NewTraffic returns an empty Traffic that tells lines apart by key. ReadLog refuses a zero key. Its logs are read by logs, or
// without options if that is nil.
func NewTraffic(logs *accesslog.Reader, key Key) *Traffic {
	t := &Traffic{logs: logs, ids: map[string]uint32{}, mostEvents: mostEvents, mostKeys: mostKeys}
	for _, name := range key.fields {
		t.slots = append(t.slots, t.reader().WantKey(name))
	}
	return t
}

// reader returns the reader of the logs. Without options it is made when it is first needed.
func (t *Traffic) reader() *accesslog.Reader {
	if t.logs == nil {
		t.logs, _ = accesslog.NewReader(accesslog.Options{}) // which have no fault
	}
	return t.logs
}

// CostFrom makes the named field the cost of each event: a whole number up to 1,000,000,000. Call it before ReadLog. By
// default each cost is 1.
func (t *Traffic) CostFrom(field string) { t.cost = []accesslog.Slot{t.reader().Want(field)} }

// ReadLog adds the lines of an access log. It detects the format of the log by its first lines, and [Traffic.Logs] says
// which it was. It reads plain text and gzip. Several logs form one stream of traffic. The name appears in errors and in
// [Traffic.Samples]. After an error, the lines before it remain added.
func (t *Traffic) ReadLog(name string, r io.Reader) error {
	if len(t.slots) == 0 {
		return fmt.Errorf("replay: read %s: the key names no field: make the Traffic with NewTraffic and ParseKey", name)
	}
	t.starts = nil
	if err := t.logs.Read(name, r, t.entry); err != nil && !errors.Is(err, errFull) {
		return fmt.Errorf("replay: %w", err)
	}
	return nil
}

// looks is how many events are added between two looks at whether the memory is full.
const looks = 1 << 15

var errFull = errors.New("the memory is full")

// Until makes ReadLog end without an error, after a whole line, when full says so. It is asked from time to time.
func (t *Traffic) Until(full func() bool) { t.full = full }

// Ended reports whether ReadLog has ended before its log, as Until asks.
func (t *Traffic) Ended() bool { return t.ended }

// entry adds an entry of a log.
func (t *Traffic) entry(e *accesslog.Entry) (why string, err error) {
	key, why := t.keyOf(e)
	if why != "" {
		return why, nil
	}
	cost, why := t.costOf(e)
	if why != "" {
		return why, nil
	}
	if t.full != nil && t.events.n%looks == looks-1 {
		if t.ended = t.full(); t.ended {
			return "", errFull
		}
	}
	id, known := t.ids[string(key)]
	switch {
	case t.events.n >= t.mostEvents:
		return whyTooMany, nil
	case !known && len(t.keys) >= t.mostKeys:
		return whyTooMixed, nil
	case !known:
		id = uint32(len(t.keys))
		text := string(key)
		t.ids[text] = id
		t.keys = append(t.keys, text)
	}
	t.add(Event{e.Time, id, cost})
	return "", nil
}

func (t *Traffic) add(e Event) {
	if t.events.n == 0 {
		t.first, t.last = e.At, e.At
	}
	t.first, t.last = min(t.first, e.At), max(t.last, e.At)
	t.events.add(e)
}

// cut drops the events outside the time that counts, which may depend on the end of the logs, and keys without events.
func (t *Traffic) cut() {
	from, to := t.reader().Span()
	if t.events.n == 0 || t.first >= from && t.last < to {
		return
	}
	all, keys := t.events, t.keys
	t.events, t.keys, t.ids = events{}, nil, map[string]uint32{}
	t.first, t.last = 0, 0
	for e := range all.seq() {
		if e.At < from || e.At >= to {
			t.reader().Leave(1)
			continue
		}
		id, known := t.ids[keys[e.Key]]
		if !known {
			id = uint32(len(t.keys))
			t.ids[keys[e.Key]] = id
			t.keys = append(t.keys, keys[e.Key])
		}
		t.add(Event{e.At, id, e.Cost})
	}
}

// Logs says how each log was read.
func (t *Traffic) Logs() []accesslog.Found { return t.reader().Found() }

// Samples returns the first rejected lines, in the order of reading.
func (t *Traffic) Samples() []accesslog.Rejected { return t.reader().Samples() }

// Reasons returns the reasons to reject lines so far, the most frequent first.
func (t *Traffic) Reasons() []accesslog.Reason { return t.reader().Reasons() }

// Keys returns the number of distinct keys, Events that of the lines that count, and First and Last their earliest and latest time,
// or 0 without any.
func (t *Traffic) Keys() int    { return len(t.keys) }
func (t *Traffic) Events() int  { return t.events.n }
func (t *Traffic) First() int64 { return t.first }
func (t *Traffic) Last() int64  { return t.last }

// All returns the events in no order.
func (t *Traffic) All() iter.Seq[Event] { return t.events.seq() }

// group sorts the events by key, time and cost, unless that is done.
//
// A replay needs no other order. Keys do not influence each other, so the order of keys does not matter. The events
// of one key at one instant differ only in their costs, so the order of the lines does not matter either.
func (t *Traffic) group() {
	if t.starts != nil {
		return
	}
	t.cut()
	t.starts = t.events.group(len(t.keys))
}

// of returns the events of one key in order. The caller has called group.
func (t *Traffic) of(key int) []Event { return t.events.part(t.starts[key], t.starts[key+1]) }
