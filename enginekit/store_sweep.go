package enginekit

import "context"

// sweepEvery is the number of new rows after which a flight sweeps a part of the store. A Sweep reads several times as
// many, so that ended rows cannot pile up.
const sweepEvery = 64

// sweep has the store delete ended rows, after enough new ones. One flight sweeps at a time.
func (e *StoreEngine) sweep() {
	now, known := e.now()
	if e.sweeper == nil || !known || e.created.Load() < sweepEvery || !e.sweeps.TryLock() {
		return
	}
	defer e.sweeps.Unlock()
	e.created.Store(0)
	ctx, cancel := context.WithTimeout(context.Background(), e.options.Timeout)
	defer cancel()
	if last, err := e.sweeper.Sweep(ctx, e.sweeps.after, now-linger); err == nil {
		e.sweeps.after = last
	}
}
