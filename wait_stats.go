package weir

import (
	"time"

	"github.com/weirflow/weir/internal/line"
)

// WaitStats describe the waiting callers of a Limiter or of all keys of a Keyed, and what became of the others. A
// caller that took its cost without waiting is not counted.
type WaitStats struct {
	Waiting int
	Oldest  time.Duration // how long the oldest waiting caller has waited
	Granted uint64        // callers that waited and then took their cost
	// Refusals by reason, at once or after a wait.
	Late   uint64 // the turn would come after the maximum wait or the deadline, or has not come by then
	Left   uint64 // the context was cancelled
	Full   uint64 // the queue was full
	Never  uint64 // the cost is above the capacity
	Closed uint64 // the limiter was closed
}

// WaitStats returns the statistics of the waiting callers.
func (l *Limiter) WaitStats() WaitStats {
	var s line.Stats
	if !l.unmade() {
		now := l.clock.Read().At
		l.mu.Lock()
		defer l.mu.Unlock()
		l.subject.AddTo(&s, now)
		l.lines.AddTo(&s)
	}
	return WaitStats(s)
}

// WaitStats returns the statistics of the waiting callers of all keys. It looks at each key that has some.
func (k *Keyed[K]) WaitStats() WaitStats {
	var s line.Stats
	for i := range k.shards {
		shard := &k.shards[i]
		shard.each(func(subject *line.Subject) { subject.AddTo(&s, k.clock.Read().At) })
		shard.lines.AddTo(&s)
	}
	return WaitStats(s)
}
