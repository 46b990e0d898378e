// Package calls makes the calls of the script: it combines the decisions of concurrent callers, lane by lane, hands out
// the answers, and undoes the takes of callers that left.
package calls

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// Lanes make the calls of an engine: one committer for each lane of a cluster, otherwise one for all.
type Lanes struct {
	setup   Setup
	keys    stored.Keys
	all     atomic.Pointer[[]Committer]
	Crossed atomic.Bool // a cluster was found behind one address
	pool    sync.Pool   // of *submission
	Stats   counters
	steps   stepLog
	Closed  atomic.Bool
	undos   *enginekit.Repeater
}

// Setup describes lanes. The fields without a comment are those of redislimit.Options.
type Setup struct {
	Call    func(ctx context.Context, keys, args []string) (string, error) // calls the script
	Observe func(ctx context.Context, began time.Time, call []*Submission, b *wire.Batch, received int, err error)
	Stepped func(sameServer func(lane int) bool) // a server's clock has moved forward

	Keys           stored.Keys
	Lanes          int
	OneSlot        bool
	Shards         bool // releases of slots are published on shards of a cluster
	Batch, Flights int
	Clock          func() int64
	DenyNewServer  bool
	Linger         time.Duration
	Logger         *slog.Logger
}

func NewLanes(s Setup) *Lanes {
	l := &Lanes{setup: s, keys: s.Keys, undos: newUndos()}
	l.pool.New = func() any { return NewSubmission() }
	if s.OneSlot {
		l.divide(s.Lanes)
	} else {
		l.divide(1)
	}
	return l
}

// divide makes the committers, each for lanes that may share a call.
func (l *Lanes) divide(n int) {
	made, all := make([]Committer, n), new(trips)
	for i := range made {
		made[i] = Committer{run: l.Run, most: l.setup.Batch, worth: (l.setup.Batch + 3) / 4, unheard: &l.Stats.Unheard, distance: distance{most: l.setup.Flights, all: all, several: n > 1}}
	}
	l.all.Store(&made)
}

// KeepToOneSlot makes each call keep to one slot from now on.
func (l *Lanes) KeepToOneSlot() {
	if l.Number() == 1 && !l.Crossed.Swap(true) {
		l.divide(l.setup.Lanes)
	}
}

// Number returns how many lanes have calls of their own.
func (l *Lanes) Number() int { return len(*l.all.Load()) }

func (l *Lanes) Committer(lane int) *Committer {
	all := *l.all.Load()
	return &all[lane%len(all)]
}

// Ask has the committer of its keys answer s. After an error, s no longer belongs to the caller, because its answer
// may still come.
func (l *Lanes) Ask(ctx context.Context, s *Submission) error {
	return l.Committer(s.lane()).do(ctx, s)
}

func (l *Lanes) Submission() *Submission { return l.pool.Get().(*Submission) }

// Release keeps an answered submission for reuse.
func (l *Lanes) Release(s *Submission) {
	s.Clear()
	s.Composed.Asked = false
	l.pool.Put(s)
}

// Fitting returns how many of the decisions fit in one call.
func (l *Lanes) Fitting(decisions []wire.Decision) int {
	work := workload{}
	for n := range decisions {
		work.add(&decisions[n])
		if n == l.setup.Batch || n > 0 && work.full() {
			return n
		}
	}
	return len(decisions)
}

// Close makes later calls fail. It returns false if they were closed before.
func (l *Lanes) Close() bool {
	first := !l.Closed.Swap(true)
	l.undos.Close()
	return first
}

// counters are the counters of redislimit.Stats.
type counters struct {
	Calls, Decisions, Late, GivenBack, Abandoned, Unrecorded atomic.Uint64
	InFlight, Surplus                                        atomic.Int64 // Surplus are undos that a caller waits for
	Unheard                                                  atomic.Int64 // calls in flight whose callers have left
}

// Queued returns how many decisions wait for a call.
func (l *Lanes) Queued() (n int) {
	all := *l.all.Load()
	for i := range all {
		n += all[i].waiting()
	}
	return n
}
