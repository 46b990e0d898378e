package desk

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// waiting counts the callers of /v1/wait and of a patient /v1/reserve, for each rule.
type waiting struct {
	mu    sync.Mutex
	all   lineOf
	rules []*lineOf // in the order of the daemon's rules
}

// lineOf is the callers of one rule. The lock of waiting guards it.
type lineOf struct {
	rule    string
	callers list.List // of time.Time, the instants of arrival
	granted uint64
	refused [len(reasons)]uint64
}

// reason says why a wait ended without a grant.
type reason uint8

const (
	reasonNever    reason = iota // the cost is above the capacity
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

// use counts for these rules. Callers that wait by removed rules are counted to their end in all.
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

// visit is one waiting caller.
type visit struct {
	of     *waiting
	lines  []*lineOf
	places []*list.Element
}

// begin counts a caller in each rule of its requests.
func (w *waiting) begin(requests []weir.Request) *visit {
	now := time.Now()
	v := &visit{of: w, lines: []*lineOf{&w.all}}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.rules {
		if slices.ContainsFunc(requests, func(q weir.Request) bool { return q.Rule.Name() == line.rule }) {
			v.lines = append(v.lines, line)
		}
	}
	for _, line := range v.lines {
		v.places = append(v.places, line.callers.PushBack(now))
	}
	return v
}

// end counts the end of the wait, if the caller had patience.
func (v *visit) end(why reason) {
	if v == nil {
		return
	}
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	for i, line := range v.lines {
		line.callers.Remove(v.places[i])
		if why == ended {
			line.granted++
		} else {
			line.refused[why]++
		}
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

func (w *waiting) stats() WaitingStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := WaitingStats{LineStats: w.all.stats(), Rules: make([]LineStats, len(w.rules))}
	for i, line := range w.rules {
		s.Rules[i] = line.stats()
	}
	return s
}

// number returns how many callers wait.
func (w *waiting) number() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.callers.Len()
}

func (l *lineOf) stats() LineStats {
	s := LineStats{Rule: l.rule, Callers: l.callers.Len(), Granted: l.granted, Refused: make(map[string]uint64, len(reasons))}
	if first := l.callers.Front(); first != nil {
		s.Oldest = time.Since(first.Value.(time.Time)).Seconds()
	}
	for why, name := range reasons {
		s.Refused[name] = l.refused[why]
	}
	return s
}
