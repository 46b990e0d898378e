// Package simulate shows what limits would have done to traffic, in virtual
// time: the decisions are those of the weir package, only the clock is ours.
//
// Start with [NewTraffic], fill it from access logs with [Traffic.ReadLog], and
// ask [Traffic.Replay] about one [Candidate] or several:
//
//	key, err := simulate.ParseKey("ip")
//	traffic := simulate.NewTraffic(key)
//	err = traffic.ReadLog("access.log", file)
//	candidate, err := simulate.ParseCandidate("token bucket 1/s burst 10")
//	report, err := traffic.Replay([]simulate.Candidate{candidate}, simulate.Options{Top: 10})
//
// Guarantees: every line read is either an event of the replay or counted as
// unparsed with a reason; and the order of the lines never matters. The report
// of a shuffled log is equal, byte for byte.
//
// Nothing here is safe for concurrent use.
package simulate

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Traffic is what happened: which key asked when. It holds 20 bytes per line
// and each distinct key once, with about 100 bytes besides its text.
type Traffic struct {
	parser parser
	events events
	ids    map[string]uint32
	keys   []string // by id

	lines    int64
	unparsed int64
	reasons  map[string]int64
	samples  []Unparsed
}

// Unparsed is a line that does not count.
type Unparsed struct {
	Log    string // the name given to ReadLog
	Line   int64  // from 1
	Reason string
	Text   string // the beginning of the line, as it stands
}

const (
	maxSamples    = 5
	maxSampleText = 80
)

// NewTraffic is traffic that has not happened yet, of lines known by key.
func NewTraffic(key Key) *Traffic {
	return &Traffic{parser: newParser(key), ids: map[string]uint32{}, reasons: map[string]int64{}}
}

// ReadLog adds the lines of an access log: combined, common, or JSON lines, told
// apart line by line, plain or compressed by gzip. Several logs are one stream
// of traffic. The name is for errors and for [Traffic.Samples]. After an error,
// what was read before it has been added.
func (t *Traffic) ReadLog(name string, r io.Reader) error {
	t.events.regroup()
	var number int64
	err := eachLine(r, func(line []byte, long bool) error {
		number++
		t.lines++
		at, key, why := t.parser.parse(line, long)
		if why != "" {
			t.reject(Unparsed{Log: name, Line: number, Reason: why}, line)
			return nil
		}
		id, err := t.intern(key)
		if err != nil {
			return err
		}
		t.events.add(at, id)
		return nil
	})
	if err != nil {
		return fmt.Errorf("simulate: read %s after line %d: %w", name, number, err)
	}
	return nil
}

// intern is the id of a key, a new one if it was never seen.
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

// Samples are the first lines that did not count, in the order they were read.
func (t *Traffic) Samples() []Unparsed { return slices.Clone(t.samples) }

// Reason is why lines did not count, and how many.
type Reason struct {
	Reason string `json:"reason"`
	Lines  int64  `json:"lines"`
}

// rejected lists the reasons, the most frequent first.
func (t *Traffic) rejected() []Reason {
	var all []Reason
	for reason, lines := range t.reasons {
		all = append(all, Reason{reason, lines})
	}
	slices.SortFunc(all, func(a, b Reason) int {
		if a.Lines != b.Lines {
			return int(max(-1, min(1, b.Lines-a.Lines)))
		}
		return strings.Compare(a.Reason, b.Reason)
	})
	return all
}
