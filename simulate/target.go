package simulate

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// Target is what suggested limits must do to a log. Create it with [ParseTarget].
type Target struct {
	text  string
	kind  targetKind
	share float64 // of requests, or of clients
	rate  weir.Rate
}

type targetKind int

const (
	refuseAtMost targetKind = iota // a share of the requests
	spareClients                   // the clients below a percentile are never refused
	protectRate                    // what all clients get together
)

// ParseTarget reads the text form of a target:
//
//	refuse 0.1%      refuse no more than this share of the requests
//	spare 99%        refuse no client below this percentile of clients by units
//	protect 200/s    admit no more than this within any second of the clock, of all keys together
//
// The error is a [*weir.SyntaxError] that points at the word.
func ParseTarget(text string) (Target, error) {
	t := Target{text: text}
	r := patternReader{text: text, words: wordsOf(text)}
	switch r.next("refuse, spare or protect", func(word string) bool { return word == "refuse" || word == "spare" || word == "protect" }) {
	case "refuse":
		t.kind, t.share = refuseAtMost, r.percent()
	case "spare":
		t.kind, t.share = spareClients, r.percent()
	case "protect":
		t.kind, t.rate = protectRate, r.rate()
	}
	if r.err == nil && len(r.words) > 0 {
		r.keyword("", "the end")
	}
	return t, r.err
}

// String returns the text of the target.
func (t Target) String() string { return t.text }

// Meaning says the target in words.
func (t Target) Meaning() string {
	switch t.kind {
	case refuseAtMost:
		return fmt.Sprintf("refuse no more than %g%% of the requests", 100*t.share)
	case spareClients:
		return fmt.Sprintf("refuse no client below the %gth percentile", 100*t.share)
	}
	return fmt.Sprintf("admit no more than %d within any second", t.PerSecond())
}

// PerSecond returns the whole units of a second at the rate.
func (t Target) PerSecond() int64 { return unitsIn(t.rate, time.Second) }
