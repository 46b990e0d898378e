package accesslog

import (
	"cmp"
	"slices"
	"strings"
)

// Tally counts the lines of all logs.
type Tally struct {
	lines, rejected, leftOut int64
	reasons                  map[string]int64
	samples                  []Rejected
}

// Rejected is a line that could not be read.
type Rejected struct {
	Log    string
	Line   int64 // from 1
	Reason string
	Text   string // the beginning of the line
}

// Reason is a reason to reject lines, and the number of lines.
type Reason struct {
	Reason string `json:"reason"`
	Lines  int64  `json:"lines"`
}

const (
	maxSamples    = 5
	maxSampleText = 80
)

func newTally() Tally { return Tally{reasons: map[string]int64{}} }

// Lines returns the number of lines. Those that name columns do not count.
func (t *Tally) Lines() int64 { return t.lines }

// Rejected returns the number of lines that could not be read.
func (t *Tally) Rejected() int64 { return t.rejected }

// LeftOut returns the number of lines that are outside Since and Until, or not to be kept.
func (t *Tally) LeftOut() int64 { return t.leftOut }

// Leave counts entries that a bound back from the end has left out after they were read.
func (t *Tally) Leave(entries int64) { t.leftOut += entries }

// Samples returns the first rejected lines, in the order of reading.
func (t *Tally) Samples() []Rejected { return slices.Clone(t.samples) }

// Reasons returns the reasons to reject lines so far, the most frequent first.
func (t *Tally) Reasons() []Reason {
	var all []Reason
	for reason, lines := range t.reasons {
		all = append(all, Reason{reason, lines})
	}
	slices.SortFunc(all, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Lines, a.Lines), strings.Compare(a.Reason, b.Reason))
	})
	return all
}

func (t *Tally) reject(r Rejected, line []byte) {
	t.rejected++
	t.reasons[r.Reason]++
	if len(t.samples) < maxSamples {
		r.Text = string(line[:min(len(line), maxSampleText)])
		t.samples = append(t.samples, r)
	}
}

// The reasons to reject a line. There are few of them, so that a report can count each. Each completes "the line …".
const (
	whyBlank     = "is blank"
	whyLong      = "is longer than 1 MiB"
	whyNotClient = "has a client that is not an address"
	whyClients   = "names several addresses, and any may be that of the client"
	whyNoTime    = "has no time"
	whyBadTime   = "has a time that cannot be read"
	whyColumns   = "has more or fewer values than the log has columns"
	whyNoFields  = "comes before a line with #Fields:, which names the columns"
	whyCompact   = "has a time such as 20231011, which is neither a Unix time nor a date with dashes"
	whyEarly     = "has a small number for its time, which may be a duration: only a field such as ts may hold a Unix time before 1973"
	whyRange     = "has a time outside the years 1678 to 2261"
	whyNotJSON   = "is not valid JSON"
	whyNoField   = "has no %s, or one cut short"
	whyUnwrapped = "does not begin like the other lines of %s"
)
