package weir

import (
	"context"
	"runtime"
	"slices"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/memory"
	"github.com/weirflow/weir/internal/word"
)

// takeOne takes one request on the fast path. If done is false, nothing has happened, and the slow path decides or
// returns the error.
func (m *Memory) takeOne(ctx context.Context, q *Request, d *Decision) (done bool) {
	if m.engine == nil || !q.isPlain() || ctx.Err() != nil {
		return false
	}
	var answer algorithm.Answer
	decided := m.engine.TakeOne(&q.Rule.compiled, q.Key, q.Cost, &answer)
	if decided.Done() {
		d.describe(&answer)
		d.Rule, d.Key = q.Rule.compiled.Name, q.Key
		decided.Count(answer.Allowed)
	}
	return decided.Done()
}

// onWords takes or peeks several requests like takeOne.
func (m *Memory) onWords(ctx context.Context, verb memory.Verb, requests []Request, d *Decision) (done bool) {
	if m.engine == nil || len(requests) == 0 || len(requests) > compiled.MaxRequests || ctx.Err() != nil {
		return false
	}
	var few [word.MaxLimits]word.Ask
	asks, now := few[:0], m.engine.Now()
	if n := len(requests); n > len(few) {
		asks = make([]word.Ask, 0, n)
	}
	for i := range requests {
		q := &requests[i]
		if !q.isPlain() || len(requests) > 1 && q.Rule.compiled.Alone() {
			return false
		}
		ask, ok := m.engine.Ask(&q.Rule.compiled, q.Key, q.Cost, now)
		if !ok {
			return false
		}
		asks = append(asks, ask)
	}
	var answer algorithm.Answer
	if done = m.engine.DecideOnWords(verb, asks, now, &answer); done {
		d.describe(&answer)
		binding := &requests[answer.Binding]
		d.Rule, d.Key = binding.Rule.compiled.Name, binding.Key
	}
	runtime.KeepAlive(requests) // and its rules, so that their states were not freed
	return done
}

// isPlain reports quickly whether a take of the request is valid.
func (q *Request) isPlain() bool {
	return q.Rule != nil && q.Otherwise == nil && q.Rule.compiled.TakesOne(q.Key, q.Colocation, q.Cost)
}

// spares reports whether no refusal of the call counts towards a Ban, because its caller waits.
func (c *Call) spares() bool {
	return c.Waits && slices.ContainsFunc(c.Requests, func(q Request) bool { return q.Rule != nil && q.Rule.compiled.Bans })
}

// isPlainTake reports whether a call takes one request, without other terms.
func (c *Call) isPlainTake() bool {
	return c.Op == OpTake && len(c.Requests) == 1 && c.Lease == 0 && c.Identity == "" && c.Taken == nil
}
