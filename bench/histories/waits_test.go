package histories

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weirflow/weir"
)

// waitLimits are limits with their models.
var waitLimits = []struct {
	limit func(capacity int64) weir.Limit
	model func(capacity int64) rules
}{
	{func(n int64) weir.Limit { return weir.Concurrency{Slots: n} }, ofSlots},
	{func(n int64) weir.Limit { return weir.TokenBucket{Rate: weir.Per(1, step), Burst: n} }, ofBucket},
	{func(n int64) weir.Limit { return weir.FixedWindow{Rate: weir.Per(n, 3*step)} }, ofWindow},
}

func TestHistoriesOfWaitsAreLinearizable(t *testing.T) {
	script := waitScript{workers: 3, phases: 10, calls: 3, most: room, verbs: []verb{take, leave, record, record, resize}, keys: [][]int{{0}}}
	keyed, queue, shared := script, script, script
	shared.flows = len(weights)
	// A decision of a Keyed that began before SetLimit may still use the earlier limit, so its limits stay.
	keyed.keys, keyed.verbs = [][]int{{0}, {1}}, []verb{take, leave, record, record}
	queue.keys, queue.verbs = [][]int{{0}, {1}, {0, 1}}, []verb{leave, settle}
	for _, l := range waitLimits {
		t.Run(fmt.Sprintf("Limiter/%v", l.limit(room)), func(t *testing.T) {
			checkWaits(t, waiting(l.model, 1), script, "gln", func(t *testing.T) waitedOn { return newLimiterLine(t, l.limit) })
		})
		t.Run(fmt.Sprintf("Limiter with flows/%v", l.limit(room)), func(t *testing.T) {
			checkWaits(t, waiting(l.model, 1), shared, "gln", func(t *testing.T) waitedOn { return newLimiterLine(t, l.limit) })
		})
		t.Run(fmt.Sprintf("Keyed/%v", l.limit(room)), func(t *testing.T) {
			checkWaits(t, waiting(l.model, 2), keyed, "gl", func(t *testing.T) waitedOn { return newKeyedLine(t, l.limit(room)) })
		})
		t.Run(fmt.Sprintf("Queue/%v", l.limit(room)), func(t *testing.T) {
			checkWaits(t, waiting(l.model, 2), queue, "gl", func(t *testing.T) waitedOn { return newQueueLine(t, l.limit(room)) })
		})
	}
}

// checkWaits plays scripts. Some callers of these have each of the ends.
func checkWaits(t *testing.T, m porcupine.Model, s waitScript, ends string, construct func(*testing.T) waitedOn) {
	overlaps, slept, undecided, found := 0, 0, 0, map[end]int{}
	for s.seed = range uint64(histories) {
		history, waits := played(t, s, construct)
		overlaps += overlapping(history)
		slept += waits
		for _, e := range history[len(history)-1].Output.(seen).ends {
			found[e]++
		}
		if !linearizable(t, m, s.seed, history) {
			undecided++
		}
	}
	mostDecided(t, undecided)
	if overlaps == 0 || slept < 5*histories {
		t.Errorf("%d histories have %d calls that overlap another and %d callers that slept, want contention", histories, overlaps, slept)
	}
	for _, e := range []byte(ends) {
		if found[end(e)] == 0 {
			t.Errorf("no caller of %d histories had the end %q", histories, e)
		}
	}
}

// played plays a script in virtual time, and returns its history and how many callers slept.
func played(t *testing.T, s waitScript, construct func(*testing.T) waitedOn) (history []porcupine.Operation, slept int) {
	synctest.Test(t, func(t *testing.T) { history, slept = playWaits(t, construct(t), s) })
	return history, slept
}

// poller asks again after each step, like a caller without a line.
type poller struct{ limiterLine }

func (p poller) wait(ctx context.Context, c call) error {
	for !p.Take(c.cost).Allowed {
		if c.cost > p.limit(room).(weir.Concurrency).Slots {
			return weir.ErrNever
		}
		select {
		case <-time.After(step / 3):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// unfair does not know flows.
type unfair struct{ limiterLine }

func (u unfair) wait(ctx context.Context, c call) error { return u.WaitN(ctx, c.cost) }

func TestLinesThatDoNotKeepTheOrderAreNoticed(t *testing.T) {
	script := waitScript{workers: 3, phases: 10, calls: 3, most: room, verbs: []verb{leave, record, record}, keys: [][]int{{0}}}
	checkNoticed(t, "callers that poll", script, func(l limiterLine) waitedOn { return poller{l} })
	script.flows = len(weights)
	checkNoticed(t, "callers whose flows do not count", script, func(l limiterLine) waitedOn { return unfair{l} })
}

func checkNoticed(t *testing.T, name string, s waitScript, wrong func(limiterLine) waitedOn) {
	for s.seed = range uint64(histories) {
		history, _ := played(t, s, func(t *testing.T) waitedOn { return wrong(newLimiterLine(t, waitLimits[0].limit)) })
		if porcupine.CheckOperationsTimeout(waiting(ofSlots, 1), history, longestCheck) == porcupine.Illegal {
			return
		}
	}
	t.Errorf("%d histories of %s are linearizable, want one that is not", histories, name)
}
