// Package simulate tries limits in virtual time, on access logs or on made-up requests. It makes its decisions with
// package weir.
//
// Create a [Traffic] with [NewTraffic], fill it from access logs with [Traffic.ReadLog], and pass [Traffic.Replay]
// one [Candidate] or more:
//
//	key, err := simulate.ParseKey("ip")
//	traffic := simulate.NewTraffic(key)
//	err = traffic.ReadLog("access.log", file)
//	candidate, err := simulate.ParseCandidate("token bucket 1/s burst 10")
//	report, err := traffic.Replay([]simulate.Candidate{candidate}, simulate.Options{Top: 10})
//
// Every line is either an event of the replay or counted as unparsed, with a reason. The order of the lines does not
// matter: a shuffled log gives the same figures.
//
// A [Driver] needs no log. It offers requests at steady rates to one [Subject] or more. Its reports are the same in every
// run. A [Pattern] is made-up traffic of many clients, on which [Pattern.Compare] tries candidates in a [Scenario].
//
// The types are not safe for concurrent use.
package simulate

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/weirflow/weir/internal/accesslog"
)

// Traffic holds the events of access logs: a key and a time each. It needs 16 to 36 bytes for each line, and
// about 100 bytes plus the text for each distinct key.
type Traffic struct {
	logs  *accesslog.Reader
	slots []accesslog.Slot // the fields of the key
	cost  []accesslog.Slot // the field of the cost; empty: each cost is 1
	text  []byte           // of a key of several fields

	ids  map[string]uint32
	keys []string // by id

	events      []event
	starts      []int // grouped by key: events[starts[id]:starts[id+1]] are those of a key
	first, last int64 // the earliest and the latest time

	mostEvents, mostKeys int
}

// The bounds of the memory of a Traffic: 9 GB of events, and as much of keys.
const (
	mostEvents = 250_000_000
	mostKeys   = 1 << 25
)

type (
	// LogReport says how a log was read.
	LogReport = accesslog.Found
	// Unparsed is a rejected line.
	Unparsed = accesslog.Rejected
	// Reason is a reason to reject lines, and the number of lines.
	Reason = accesslog.Reason
)

// NewTraffic returns an empty Traffic that identifies lines by key. ReadLog refuses a zero key.
func NewTraffic(key Key) *Traffic { return NewTrafficOf(nil, key) }

// NewTrafficOf returns an empty Traffic whose logs a reader reads that has options. Only the program can make one.
func NewTrafficOf(logs *accesslog.Reader, key Key) *Traffic {
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
		return fmt.Errorf("simulate: read %s: the key names no field: make the Traffic with NewTraffic and ParseKey", name)
	}
	t.starts = nil
	if err := t.logs.Read(name, r, t.entry); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	return nil
}

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
	id, known := t.ids[string(key)]
	switch {
	case len(t.events) >= t.mostEvents:
		return whyTooMany, nil
	case !known && len(t.keys) >= t.mostKeys:
		return whyTooMixed, nil
	case !known:
		id = uint32(len(t.keys))
		text := string(key)
		t.ids[text] = id
		t.keys = append(t.keys, text)
	}
	t.add(event{e.Time, id, cost})
	return "", nil
}

func (t *Traffic) add(e event) {
	if len(t.events) == 0 {
		t.first, t.last = e.at, e.at
	}
	t.first, t.last = min(t.first, e.at), max(t.last, e.at)
	t.events = append(t.events, e)
}

// cut drops the events outside the time that counts, which may depend on the end of the logs, and keys without events.
func (t *Traffic) cut() {
	from, to := t.reader().Span()
	if len(t.events) == 0 || t.first >= from && t.last < to {
		return
	}
	events, keys := t.events, t.keys
	t.events, t.keys, t.ids = nil, nil, map[string]uint32{}
	t.first, t.last = 0, 0
	for _, e := range events {
		if e.at < from || e.at >= to {
			t.reader().Leave(1)
			continue
		}
		id, known := t.ids[keys[e.key]]
		if !known {
			id = uint32(len(t.keys))
			t.ids[keys[e.key]] = id
			t.keys = append(t.keys, keys[e.key])
		}
		t.add(event{e.at, id, e.cost})
	}
}

// Logs says how each log was read.
func (t *Traffic) Logs() []LogReport { return t.reader().Found() }

// Samples returns the first rejected lines, in the order of reading.
func (t *Traffic) Samples() []Unparsed { return t.reader().Samples() }

// Reasons returns the reasons to reject lines so far, the most frequent first.
func (t *Traffic) Reasons() []Reason { return t.reader().Reasons() }

// event is a line that counts.
type event struct {
	at   int64
	key  uint32 // its id
	cost uint32
}

// group sorts the events by key, time and cost, unless that is done.
//
// A replay needs no other order. Keys do not influence each other, so the order of keys does not matter. The events
// of one key at one instant differ only in their costs, so the order of the lines does not matter either.
func (t *Traffic) group() {
	if t.starts != nil {
		return
	}
	t.cut()
	slices.SortFunc(t.events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at), cmp.Compare(a.cost, b.cost))
	})
	t.starts = make([]int, len(t.keys)+1)
	for i, e := range t.events {
		t.starts[e.key+1] = i + 1
	}
}

// of returns the events of one key in order. The caller has called group.
func (t *Traffic) of(key int) []event { return t.events[t.starts[key]:t.starts[key+1]] }
