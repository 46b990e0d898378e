package live

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
)

// WhatIf is the effect of another limit on the sampled requests of a rule, beside the one in force.
type WhatIf struct {
	From     Time      `json:"from"`
	To       Time      `json:"to"`
	Requests int       `json:"requests"`
	Sampled  int       `json:"sampled"` // one in so many keys, with all of its requests
	Before   Tally     `json:"before"`
	After    Tally     `json:"after"`
	Keys     []KeyDiff `json:"keys"` // with the greatest differences
}

// Tally counts requests.
type Tally struct {
	Admitted int `json:"admitted"`
	Refused  int `json:"refused"`
}

// KeyDiff are the refused requests of a key, under both limits.
type KeyDiff struct {
	Key      string `json:"key"`
	Requests int    `json:"requests"`
	Before   int    `json:"before"`
	After    int    `json:"after"`
}

const mostDiffs = 20

// WhatIf tries a limit on the requests of the last minutes. Under both limits all keys begin unused, so that the two
// compare. A request that a plan, its key or a rule of the same budget gives another limit keeps that. It ignores
// overrides, and other rules of the same request. An error says what the caller can mend.
func (l *Live) WhatIf(name, limit string) (*WhatIf, error) {
	now := time.Now()
	rule := l.o.Rules(name)
	if rule == nil {
		return nil, fmt.Errorf("rule %q: no rule in force has that name", name)
	}
	limits, err := weir.ParseLimits(limit)
	if err != nil {
		return nil, fmt.Errorf("limit: %w", err)
	}
	changed, err := weir.NewRule(name, limits...)
	if err == nil {
		err = l.o.Engine.Check(changed)
	}
	if err != nil {
		return nil, fmt.Errorf("limit: %w", err)
	}
	if weir.Kit.Held(rule) != nil || weir.Kit.Held(changed) != nil {
		return nil, fmt.Errorf("limit: slots are held for as long as work lasts, which a sample of requests does not tell")
	}
	requests, from, in := l.sample.of(name, now)
	w := &WhatIf{From: timeOf(from), To: timeOf(now), Requests: len(requests), Sampled: in, Keys: []KeyDiff{}}
	keys := map[uint64]*KeyDiff{}
	for _, q := range requests {
		if keys[q.hash] == nil {
			keys[q.hash] = &KeyDiff{Key: q.key}
		}
		keys[q.hash].Requests++
	}
	w.Before, err = try(rule, requests, func(q *request) { keys[q.hash].Before++ })
	if err == nil {
		w.After, err = try(changed, requests, func(q *request) { keys[q.hash].After++ })
	}
	for _, k := range keys {
		w.Keys = append(w.Keys, *k)
	}
	differ := func(k KeyDiff) int { return max(k.Before-k.After, k.After-k.Before) }
	slices.SortFunc(w.Keys, func(a, b KeyDiff) int {
		return cmp.Or(cmp.Compare(differ(b), differ(a)), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Key, b.Key))
	})
	w.Keys = w.Keys[:min(len(w.Keys), mostDiffs)]
	return w, err
}

// try decides requests by a rule, or by the limits that are their own, each at its time.
func try(rule *weir.Rule, requests []request, refused func(*request)) (t Tally, err error) {
	engine := tape.New()
	for i := range requests {
		q := &requests[i]
		engine.At(q.at.UnixNano()) // calls that ran at once may have been seen in another order
		d, err := engine.Take(context.Background(), cmp.Or(q.own, rule).For(string(binary.BigEndian.AppendUint64(nil, q.hash)), q.cost))
		switch {
		case err != nil:
			return t, fmt.Errorf("limit: %w", err)
		case d.Allowed:
			t.Admitted++
		default:
			t.Refused++
			refused(q)
		}
	}
	return t, nil
}

// Refusal is a refused request.
type Refusal struct {
	At   Time   `json:"at"`
	Rule string `json:"rule"`
	Key  string `json:"key"`
	Cost int64  `json:"cost"`
}

const mostRefusals = 20

// Refusals returns the last requests in the sample that the rule refused, the newest first.
func (l *Live) Refusals(rule string) []Refusal {
	requests, _, _ := l.sample.of(rule, time.Now())
	all := []Refusal{}
	for _, q := range slices.Backward(requests) {
		if q.refused && len(all) < mostRefusals {
			all = append(all, Refusal{timeOf(q.at), rule, q.key, q.cost})
		}
	}
	return all
}
