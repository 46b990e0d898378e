package pace

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// QueueStats describe the waiting callers of a queue, and count how earlier waits ended.
type QueueStats struct {
	QueueCounts
	Rules []QueueRuleStats // by name
}

// QueueRuleStats are the statistics of the callers that ask for a rule, alone or with others.
type QueueRuleStats struct {
	Rule string
	QueueCounts
}

// QueueCounts count callers.
type QueueCounts struct {
	Waiting int
	Oldest  time.Duration // how long the oldest waiting caller has waited
	Granted uint64
	// Refusals by reason.
	Late  uint64 // the deadline is before the turn, or ended the wait
	Left  uint64 // the context was cancelled
	Full  uint64 // the queue was full
	Never uint64 // the cost is above the capacity
	Fault uint64 // the engine could not decide, or refused the requests
}

// Waited is the outcome of a caller: see QueueOptions.Observe.
type Waited struct {
	Requests []weir.Request // not to be changed
	Took     time.Duration
	Err      error // nil if it was granted
}

// Stats returns the statistics of the queue. It looks at each waiting caller.
func (q *Queue) Stats() QueueStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, all := time.Now(), q.counts
	rules := map[string]QueueCounts{}
	for name, counts := range q.byRule {
		rules[name] = *counts
	}
	for c := range q.all {
		age := now.Sub(c.since)
		all.add(age)
		for _, name := range rulesOf(c.requests) {
			counts := rules[name]
			counts.add(age)
			rules[name] = counts
		}
	}
	stats := QueueStats{QueueCounts: all}
	for name, counts := range rules {
		stats.Rules = append(stats.Rules, QueueRuleStats{name, counts})
	}
	slices.SortFunc(stats.Rules, func(a, b QueueRuleStats) int { return cmp.Compare(a.Rule, b.Rule) })
	return stats
}

// add counts a waiting caller.
func (c *QueueCounts) add(age time.Duration) {
	c.Waiting++
	c.Oldest = max(c.Oldest, age)
}

// count counts the outcome of a wait.
func (c *QueueCounts) count(err error) {
	switch {
	case err == nil:
		c.Granted++
	case errors.Is(err, weir.ErrQueueFull):
		c.Full++
	case errors.Is(err, weir.ErrNever):
		c.Never++
	case errors.Is(err, context.DeadlineExceeded):
		c.Late++
	case errors.Is(err, context.Canceled):
		c.Left++
	default:
		c.Fault++
	}
}

// begins notes a caller that waits.
func (q *Queue) begins(c *caller) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.since = time.Now()
	q.resolve(c)
	q.all[c] = true
}

// ends notes the outcome of a caller. If Observe panics, what the caller took is given back.
func (q *Queue) ends(c *caller, err error) {
	q.mu.Lock()
	delete(q.all, c)
	q.counts.count(err)
	for _, name := range rulesOf(c.requests) {
		counts := q.byRule[name]
		if counts == nil {
			counts = &QueueCounts{}
			q.byRule[name] = counts
		}
		counts.count(err)
	}
	q.mu.Unlock()
	if q.observe == nil {
		return
	}
	observed := false
	defer func() {
		if !observed && err == nil {
			q.abandon(c)
		}
	}()
	q.observe(Waited{c.requests, time.Since(c.since), err})
	observed = true
}

// rulesOf returns the distinct names of the rules.
func rulesOf(requests []weir.Request) (names []string) {
	for i := range requests {
		if r := requests[i].Rule; r != nil && !slices.Contains(names, r.Name()) {
			names = append(names, r.Name())
		}
	}
	return names
}
