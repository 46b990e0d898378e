package live

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/top"
)

// Change is a change of the daemon while it runs, as the log has it.
type Change struct {
	At     Time            `json:"at"`
	Who    string          `json:"who"`
	From   string          `json:"from"`
	What   string          `json:"what"`
	Rule   string          `json:"rule"`
	Key    string          `json:"key"`
	Prefix bool            `json:"prefix"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// The bounds of the trail.
const (
	mostChanges = 50
	mostState   = 4 << 10 // bytes of a state before or after
)

// trail keeps the last changes, the newest first.
type trail struct {
	mu   sync.Mutex
	last []Change
}

// Audited takes note of a change.
func (l *Live) Audited(c Change) {
	c.At = timeOf(time.Now())
	if c.What == "reset" && l.o.Metrics != nil {
		l.o.Metrics.Banned.Lift(c.Rule, c.Key)
	}
	c.Key, _ = top.Kept(c.Key)
	c.Rule, _ = top.Kept(c.Rule)
	for _, state := range []*json.RawMessage{&c.Before, &c.After} {
		if len(*state) > mostState || len(*state) == 0 {
			*state = json.RawMessage("null")
		}
	}
	t := &l.trail
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append([]Change{c}, t.last[:min(len(t.last), mostChanges-1)]...)
}

// Cleared takes note of a key that a caller has cleared by the API.
func (l *Live) Cleared(who *auth.Identity, from string, q weir.Request) {
	l.Audited(Change{Who: who.Name, From: from, What: "reset", Rule: q.Rule.Name(), Key: q.Key})
}

// changes returns the last changes.
func (t *trail) changes() []Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Change{}, t.last...)
}

// Reload is the outcome of a change to rules files.
type Reload struct {
	At       Time     `json:"at"`
	OK       bool     `json:"ok"`
	Number   int      `json:"number,omitempty"`   // of problems
	Problems []string `json:"problems,omitempty"` // up to mostProblems, which may quote keys; with the scope admin
}

// mostProblems bounds the problems of a reload.
const mostProblems = 20

// Reloaded takes note of a reload. After an error the rules of before are in force.
func (l *Live) Reloaded(problems []string) {
	r := &Reload{At: timeOf(time.Now()), OK: len(problems) == 0, Number: len(problems), Problems: problems[:min(len(problems), mostProblems)]}
	l.reloaded.Store(r)
	after, _ := json.Marshal(r)
	l.Audited(Change{Who: "rules files", What: "reload", After: after})
}
