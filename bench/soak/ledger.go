package main

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/trial"
)

// ledger is a key whose use is known exactly over the whole run, for any movement of the clock. It is touched after
// each movement, before any other call, so that its stored state is never behind what the engine has evicted.
type ledger struct {
	account
	model model
}

// model computes the rest of a capacity without the engine.
type model interface {
	// add counts net units used at t.
	add(t, net int64)
	// remaining returns the units left at t.
	remaining(t int64) int64
}

func makeLedgers() (ledgers []*ledger, err error) {
	const unit, burst, most = time.Millisecond, 4000, 1 << 40
	for name, kind := range map[string]struct {
		limit weir.Limit
		model model
	}{
		"ledger-bucket":  {weir.TokenBucket{Rate: weir.Per(1, unit), Burst: burst}, &bucketModel{unit: int64(unit), burst: burst}},
		"ledger-window":  {weir.FixedWindow{Rate: weir.Per(most, weir.MaxPeriod)}, &windowModel{limit: most, period: int64(weir.MaxPeriod)}},
		"ledger-sliding": {weir.SlidingWindow{Rate: weir.Per(5000, 10*time.Second)}, &slidingModel{limit: 5000, period: int64(10 * time.Second)}},
		"ledger-held":    {weir.Concurrency{Slots: most}, &heldModel{slots: most}},
	} {
		r, err := newRule(name, kind.limit)
		if err != nil {
			return nil, err
		}
		l := &ledger{model: kind.model}
		l.rule, l.key = r, "the ledger"
		ledgers = append(ledgers, l)
	}
	return ledgers, nil
}

// touch records a unit, so that the state is current.
func (l *ledger) touch(w *world) {
	l.net.Store(0)
	if _, ok := w.record(l.request(1)); ok {
		l.model.add(w.now.Load(), 1)
	}
}

// settle compares the ledger with the engine at the end of a phase. If the clock moved, only touch has used the
// ledger. settle then touches it again, because the clock may go back next.
func (l *ledger) settle(w *world, p *phase) {
	l.model.add(p.lo, l.net.Swap(0))
	if p.running {
		l.touch(w)
	}
	d, ok := w.peek(l.request(0))
	if want := l.model.remaining(p.hi); ok && d.Remaining != want {
		w.violated("phase %d, %s, over the whole run: %d should remain at %d, but the engine reports %d", p.number, l.rule, want, p.hi, d.Remaining)
	}
}

// bucketModel stores the instant at which the bucket is full.
type bucketModel struct{ unit, burst, full int64 }

func (m *bucketModel) add(t, net int64) { m.full = max(m.full, t) + net*m.unit }

func (m *bucketModel) remaining(t int64) int64 {
	lacking := max(m.full-t, 0)
	return max(m.burst-(lacking+m.unit-1)/m.unit, 0)
}

// windowModel counts the use of the newest window that was touched.
type windowModel struct{ limit, period, window, used int64 }

func (m *windowModel) add(t, net int64) {
	if window := trial.FloorDiv(t, m.period); window > m.window {
		m.window, m.used = window, 0
	}
	m.used += net
}

func (m *windowModel) remaining(t int64) int64 {
	if trial.FloorDiv(t, m.period) > m.window {
		return m.limit
	}
	return max(m.limit-m.used, 0)
}

// slidingModel also counts the previous window.
type slidingModel struct{ limit, period, window, used, before int64 }

func (m *slidingModel) at(t int64) slidingModel {
	s := *m
	switch window := trial.FloorDiv(t, m.period); {
	case window == m.window+1:
		s.window, s.used, s.before = window, 0, m.used
	case window > m.window:
		s.window, s.used, s.before = window, 0, 0
	}
	return s
}

func (m *slidingModel) add(t, net int64) {
	*m = m.at(t)
	m.used += net
}

func (m *slidingModel) remaining(t int64) int64 {
	s := m.at(t)
	left := min(s.period-(t-s.window*s.period), s.period)
	weighed := (s.before*left + s.period - 1) / s.period
	return max(s.limit-s.used-weighed, 0)
}

// heldModel does not depend on time: held units stay held.
type heldModel struct{ slots, held int64 }

func (m *heldModel) add(_, net int64) { m.held += net }

func (m *heldModel) remaining(int64) int64 { return max(m.slots-m.held, 0) }
