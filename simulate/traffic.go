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
// matter: a shuffled log gives the same report, byte for byte.
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
	"strings"
)

// Traffic holds the events of access logs: a key and a time each. It needs 16 to 36 bytes for each line, and
// about 100 bytes plus the text for each distinct key.
type Traffic struct {
	parser parser
	ids    map[string]uint32
	keys   []string // by id

	events      []event
	starts      []int // grouped by key: events[starts[id]:starts[id+1]] are those of a key
	first, last int64 // the earliest and the latest time

	lines    int64
	unparsed int64
	reasons  map[string]int64
	samples  []Unparsed
}

// Unparsed is a rejected line.
type Unparsed struct {
	Log    string // the name passed to ReadLog
	Line   int64  // from 1
	Reason string
	Text   string // the beginning of the line
}

const (
	maxSamples    = 5
	maxSampleText = 80
)

// NewTraffic returns an empty Traffic that identifies lines by key. ReadLog refuses a zero key.
func NewTraffic(key Key) *Traffic {
	return &Traffic{parser: newParser(key), ids: map[string]uint32{}, reasons: map[string]int64{}}
}

// CostFrom makes the named field of JSON lines the cost of each event: a whole number up to 1,000,000,000. Call it
// before ReadLog. By default each cost is 1.
func (t *Traffic) CostFrom(field string) { t.parser.costFrom(field) }

// ReadLog adds the lines of an access log. It detects the format of each line: combined, common or JSON. It reads
// plain text and gzip. Several logs form one stream of traffic. The name appears in errors and in [Traffic.Samples].
// After an error, the lines before it remain added.
func (t *Traffic) ReadLog(name string, r io.Reader) error {
	switch {
	case len(t.parser.fields) == 0:
		return fmt.Errorf("simulate: read %s: the key names no field: make the Traffic with NewTraffic and ParseKey", name)
	case r == nil:
		return fmt.Errorf("simulate: read %s: the reader is nil", name)
	}
	t.starts = nil
	var number int64
	err := eachLine(r, func(line []byte, long bool) error {
		number++
		t.lines++
		at, key, why := t.parser.parse(line, long)
		cost := uint32(1)
		if why == "" {
			cost, why = t.parser.cost()
		}
		if why != "" {
			t.reject(Unparsed{Log: name, Line: number, Reason: why}, line)
			return nil
		}
		id, err := t.intern(key)
		if err != nil {
			return err
		}
		t.add(event{at, id, cost})
		return nil
	})
	if err != nil {
		return fmt.Errorf("simulate: read %s after line %d: %w", name, number, err)
	}
	return nil
}

func (t *Traffic) add(e event) {
	if len(t.events) == 0 {
		t.first, t.last = e.at, e.at
	}
	t.first, t.last = min(t.first, e.at), max(t.last, e.at)
	t.events = append(t.events, e)
}

// intern returns the id of a key and adds a new key.
func (t *Traffic) intern(key []byte) (uint32, error) {
	if id, ok := t.ids[string(key)]; ok {
		return id, nil
	}
	if uint64(len(t.keys)) >= maxKeys {
		return 0, fmt.Errorf("more than %d distinct keys", uint32(maxKeys))
	}
	id := uint32(len(t.keys))
	text := string(key)
	t.ids[text] = id
	t.keys = append(t.keys, text)
	return id, nil
}

const maxKeys = 1<<32 - 1

func (t *Traffic) reject(u Unparsed, line []byte) {
	t.unparsed++
	t.reasons[u.Reason]++
	if len(t.samples) < maxSamples {
		u.Text = string(line[:min(len(line), maxSampleText)])
		t.samples = append(t.samples, u)
	}
}

// Samples returns the first rejected lines, in the order of reading.
func (t *Traffic) Samples() []Unparsed { return slices.Clone(t.samples) }

// Reason is a reason to reject lines, and the number of lines.
type Reason struct {
	Reason string `json:"reason"`
	Lines  int64  `json:"lines"`
}

// Reasons returns the reasons to reject lines so far, the most frequent first.
func (t *Traffic) Reasons() []Reason {
	var all []Reason
	for reason, lines := range t.reasons {
		all = append(all, Reason{reason, lines})
	}
	slices.SortFunc(all, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Lines, a.Lines), strings.Compare(a.Reason, b.Reason))
	})
	return all
}

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
