package top

import (
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// How the fullest keys are peeked at: off the path of callers, and for one peek at most after 128 calls.
const (
	peekEvery   = time.Second
	peekTime    = time.Second // for one batch of peeks
	callsOfPeek = 128         // 0.8 % more calls; samples estimate the calls within a tenth
	mostPeeks   = 64          // in a batch
)

// Peek looks at the keys of samples until the context ends, so that [Keys.Fullest] also knows the keys of rules that match and do
// not bind. A decision says what is left of the rule that binds alone. While the engine is away, nothing is peeked at.
func (k *Keys) Peek(ctx context.Context, engine weir.Engine, away func() bool) {
	ticker := time.NewTicker(peekEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !away() {
				k.peek(ctx, engine, time.Now())
			}
		}
	}
}

// peek makes the peeks that the calls so far allow.
func (k *Keys) peek(ctx context.Context, engine weir.Engine, now time.Time) {
	allowed := min(int(k.credit.Load()/callsOfPeek), mostPeeks)
	if allowed == 0 {
		return
	}
	picks := k.picks(allowed, now)
	if len(picks) == 0 {
		return
	}
	k.spend(len(picks))
	calls, results := make([]weir.Call, len(picks)), make([]weir.Result, len(picks))
	for i := range picks {
		calls[i] = weir.Call{Op: weir.OpPeek, Requests: []weir.Request{{Rule: picks[i].rule, Key: picks[i].key, Colocation: picks[i].colocation, Cost: 1}}}
	}
	ctx, cancel := context.WithTimeout(ctx, peekTime)
	defer cancel()
	if engine.Each(ctx, calls, results) != nil {
		return
	}
	for i := range results {
		if r := (*k.rules.Load())[picks[i].rule.Name()]; r != nil && results[i].Err == nil {
			r.fullest.says(picks[i], &results[i].Decision, time.Now())
		}
	}
}

// spend takes peeks out of the credit. Credit beyond a batch is forgotten, so that calls of an hour ago allow no peeks now.
func (k *Keys) spend(peeks int) {
	for {
		credit := k.credit.Load()
		if k.credit.CompareAndSwap(credit, min(credit, callsOfPeek*mostPeeks)-uint64(callsOfPeek*peeks)) {
			return
		}
	}
}

// picks returns up to n keys to peek at: one of each rule in turn, those of the rule first that has waited longest.
func (k *Keys) picks(n int, now time.Time) (picks []subject) {
	type turn struct {
		of     *fullest
		picked time.Time
	}
	var turns []turn
	k.each("", func(_ string, r *ruleKeys) {
		r.fullest.mu.Lock()
		turns = append(turns, turn{&r.fullest, r.fullest.picked})
		r.fullest.mu.Unlock()
	})
	slices.SortFunc(turns, func(a, b turn) int { return a.picked.Compare(b.picked) })
	for len(turns) > 0 {
		turns = slices.DeleteFunc(turns, func(t turn) bool {
			if len(picks) == n {
				return true
			}
			s, ok := t.of.pick(now)
			if ok {
				picks = append(picks, s)
			}
			return !ok
		})
	}
	return picks
}
