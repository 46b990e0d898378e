// Package live shows what a daemon does at the moment, to people who look at its page or at weir ctl top --watch.
//
// [New] returns a [Live], whose Stream serves GET /v1/admin/live: one stream of server-sent events, at most one a
// second, each a [Message] in JSON. The first of a stream has everything, and later ones the changes since. The numbers
// are those of /metrics (figures.go), so no second count can disagree.
//
// While nobody looks, it reads the counters each [step] for the history of 15 minutes and does nothing else. While somebody
// does, it also sees each decision, for a sample of requests that What-if tries another limit on (sample.go, whatif.go). All viewers get the same bytes (frame.go, stream.go).
//
// docs/reference/api.md#the-live-stream describes the format.
package live

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/metrics"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/layer"
)

// Options are what a daemon has.
type Options struct {
	Metrics   *metrics.Metrics
	Overrides func() []override.Entry
	Rules     func(name string) *weir.Rule // that of the name in force, or nil
	IsShadow  func(rule string) bool       // whether a rule refuses nothing; nil for no
	Engine    weir.Engine                  // for what limits it can hold
	Now       func() Now                   // the state of the daemon, except for its latency and reloads
	Viewers   int                          // the most streams at a time
	Requests  int                          // the most requests in the sample
}

// The times of the figures.
const (
	tick      = time.Second
	step      = 5 * time.Second
	rateTime  = 10 * time.Second
	afterLook = 15 * time.Minute // how long decisions are seen after the last viewer has left
)

// Live watches a daemon. It is safe for concurrent use.
type Live struct {
	o Options

	mu      sync.Mutex
	figures figures
	frames  frames
	steps   time.Time // of the last step
	looked  time.Time // when somebody looked last; zero while decisions are not seen

	viewers  viewers
	trail    trail
	sample   sample
	reloaded atomic.Pointer[Reload]
}

// New returns a Live. Run must be running for its streams to go on.
func New(o Options) *Live {
	l := &Live{o: o}
	l.figures.init()
	l.viewers.most = o.Viewers
	l.sample.init(o.Requests)
	return l
}

// Run looks at the counters until the context ends. It ends the streams then.
func (l *Live) Run(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	defer l.viewers.close()
	l.look(time.Now(), false)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			l.tick(now)
		}
	}
}

// tick looks at the counters if somebody watches or a step has ended.
func (l *Live) tick(now time.Time) {
	watched := l.viewers.number() > 0
	l.mu.Lock()
	if watched {
		l.looked = now
	} else if !l.looked.IsZero() && now.Sub(l.looked) > afterLook {
		l.looked = time.Time{}
		l.o.Metrics.Follow(nil)
		l.sample.clear()
	}
	due := watched || now.Sub(l.steps) >= step-tick/2
	l.mu.Unlock()
	if due {
		l.look(now, watched)
		l.viewers.wake()
	}
}

// look reads the counters, and for viewers everything else. It forgets the frames of before.
func (l *Live) look(now time.Time, watched bool) {
	read := l.o.Metrics.Figures(watched)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames.tick++
	l.figures.add(now, read, l.frames.tick)
	if now.Sub(l.steps) >= step-tick/2 {
		l.steps = now
		l.figures.step(now, l.frames.tick)
		l.sample.expire(now)
	}
	if watched {
		l.frames.forget()
		l.frames.collect(l, now)
	}
}

// begin makes ready for a viewer.
func (l *Live) begin(now time.Time) {
	l.mu.Lock()
	if l.looked.IsZero() {
		l.sample.begin(now)
		l.o.Metrics.Follow(l.seen)
	}
	l.looked = now
	fresh := now.Sub(l.frames.at) < tick
	l.mu.Unlock()
	if !fresh {
		l.look(now, true)
	}
}

// seen learns of each decision in force while somebody looks.
func (l *Live) seen(o *layer.Observation) {
	if o.Err != nil || o.Op == weir.OpPeek {
		return
	}
	l.sample.seen(o, l.o.Rules)
}
