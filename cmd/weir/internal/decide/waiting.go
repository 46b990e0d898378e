package decide

import (
	"slices"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// waiting counts how waits of /v1/wait and of a patient /v1/reserve have ended, for each rule. The queue knows who waits.
type waiting struct {
	mu    sync.Mutex
	all   lineOf
	rules []*lineOf // in the order of the daemon's rules
}

// lineOf is the ends of the waits of one rule. The lock of waiting guards it.
type lineOf struct {
	rule    string
	granted uint64
	refused [len(reasons)]uint64
}

// reason says why a wait ended without a grant.
type reason uint8

const (
	reasonNever    reason = iota // the cost is above the capacity, which is 0 for a blocked key
	reasonPatience               // the turn would come, or did not come, before the end of the caller's patience
	reasonFull                   // too many callers wait
	reasonLeft                   // the client has gone
	reasonStop                   // the daemon stops
	reasonEngine                 // the engine could not decide
	ended                        // no refusal: the caller was granted its requests
)

var reasons = [...]string{
	reasonNever: "never", reasonPatience: "patience", reasonFull: "full", reasonLeft: "left", reasonStop: "stop", reasonEngine: "engine",
}

// use counts for these rules. The ends of waits by removed rules are counted in all.
func (w *waiting) use(rules []*weir.Rule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := make(map[string]*lineOf, len(w.rules))
	for _, line := range w.rules {
		before[line.rule] = line
	}
	w.rules = make([]*lineOf, len(rules))
	for i, rule := range rules {
		if w.rules[i] = before[rule.Name()]; w.rules[i] == nil {
			w.rules[i] = &lineOf{rule: rule.Name()}
		}
	}
}

// end counts the end of a wait for requests.
func (w *waiting) end(requests []weir.Request, why reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.end(why)
	for _, line := range w.rules {
		if slices.ContainsFunc(requests, func(q weir.Request) bool { return q.Rule.Name() == line.rule }) {
			line.end(why)
		}
	}
}

func (l *lineOf) end(why reason) {
	if why == ended {
		l.granted++
	} else {
		l.refused[why]++
	}
}

// LineStats are the waiting callers of one rule, as GET /v1/stats shows them.
type LineStats struct {
	Rule    string            `json:"rule,omitempty"`
	Callers int               `json:"callers"`
	Oldest  float64           `json:"oldest"`
	Granted uint64            `json:"granted"`
	Refused map[string]uint64 `json:"refused"`
}

// WaitingStats are all waiting callers, as GET /v1/stats shows them.
type WaitingStats struct {
	LineStats
	Rules []LineStats `json:"rules"`
}

func (w *waiting) stats(queue pace.QueueStats) WaitingStats {
	now := map[string]pace.QueueCounts{}
	for _, r := range queue.Rules {
		now[r.Rule] = r.QueueCounts
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := WaitingStats{LineStats: w.all.stats(queue.QueueCounts), Rules: make([]LineStats, len(w.rules))}
	for i, line := range w.rules {
		s.Rules[i] = line.stats(now[line.rule])
	}
	return s
}

func (l *lineOf) stats(now pace.QueueCounts) LineStats {
	s := LineStats{Rule: l.rule, Callers: now.Waiting, Oldest: now.Oldest.Seconds(), Granted: l.granted, Refused: make(map[string]uint64, len(reasons))}
	for why, name := range reasons {
		s.Refused[name] = l.refused[why]
	}
	return s
}
