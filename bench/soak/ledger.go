package main

import (
	"time"

	"github.com/weirflow/weir"
)

// ledger is a key whose use is known exactly over the whole run, for any movement of the clock. It is touched after
// each movement, before any other call, so that its stored state is never behind what the engine has evicted. Its model is
// a Limiter, which has no table, bound, snapshot or eviction that could fail: it counts the sum of what many callers did.
type ledger struct {
	account
	model *weir.Limiter
}

func makeLedgers() (ledgers []*ledger, err error) {
	const most = 1 << 40
	for name, limit := range map[string]weir.Limit{
		"ledger-bucket":  weir.TokenBucket{Rate: weir.Per(1, time.Millisecond), Burst: 4000},
		"ledger-window":  weir.FixedWindow{Rate: weir.Per(most, weir.MaxPeriod)},
		"ledger-sliding": weir.SlidingWindow{Rate: weir.Per(5000, 10*time.Second)},
		"ledger-held":    weir.Concurrency{Slots: most},
	} {
		r, err := newRule(name, limit)
		if err != nil {
			return nil, err
		}
		model, err := weir.New(limit)
		if err != nil {
			return nil, err
		}
		l := &ledger{model: model}
		l.rule, l.key = r, "the ledger"
		ledgers = append(ledgers, l)
	}
	return ledgers, nil
}

// touch records a unit, so that the state is current.
func (l *ledger) touch(w *world) {
	l.net.Store(0)
	if _, ok := w.record(l.request(1)); ok {
		l.model.RecordAt(time.Unix(0, w.now.Load()), 1)
	}
}

// settle compares the ledger with the engine at the end of a phase. If the clock moved, only touch has used the
// ledger. settle then touches it again, because the clock may go back next.
func (l *ledger) settle(w *world, p *phase) {
	if at, net := time.Unix(0, p.lo), l.net.Swap(0); net < 0 {
		l.model.ReturnAt(at, -net)
	} else {
		l.model.RecordAt(at, net)
	}
	if p.running {
		l.touch(w)
	}
	d, ok := w.peek(l.request(0))
	if want := l.model.PeekAt(time.Unix(0, p.hi), 0).Remaining; ok && d.Remaining != want {
		w.violated("phase %d, %s, over the whole run: %d should remain at %d, but the engine reports %d", p.number, l.rule, want, p.hi, d.Remaining)
	}
}
