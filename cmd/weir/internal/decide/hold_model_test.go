package decide

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// A simple model of holds under a fixed window: what each hold has taken in which window, and what became of it.

const modelLimit, modelWindow = 1000, 10 * time.Minute

type modelHold struct {
	id                 string
	cost               int64
	window             int64
	ends, known        time.Time // known is when the id is forgotten
	daemon             int       // that gives the units back
	settled, committed bool
}

type model struct {
	used  map[int64]int64 // by window
	holds []*modelHold
	dead  map[int]bool
}

func windowOf(at time.Time) int64 { return at.UnixNano() / int64(modelWindow) }

// pass gives back what has come to its end.
func (m *model) pass() {
	now := time.Now()
	for _, h := range m.holds {
		if !h.settled && !h.ends.After(now) && !m.dead[h.daemon] {
			h.settled = true
			m.used[h.window] -= h.cost
		}
	}
}

func (m *model) commit(h *modelHold, actual int64) (stood bool) {
	now := time.Now()
	switch {
	case !h.known.After(now):
	case h.committed:
		return false
	default:
		h.committed = true
		if stood = !h.settled && (h.cost > 0 || now.Before(h.ends)); !h.settled {
			h.settled = true
			m.used[h.window] -= h.cost
		}
	}
	m.used[windowOf(now)] += actual
	return stood
}

// killable is a daemon whose calls of the engine can end.
func killable(t *testing.T, memory *weir.Memory) (*holding, *failing) {
	engine := newFailing(memory)
	return newHolding(t, engine, fmt.Sprintf("fixed window %d/10m", modelLimit)), engine
}

func TestHoldsOfTwoDaemonsAreThoseOfTheModel(t *testing.T) {
	for seed := range randtest.Seeds(t, 300, 40) {
		synctest.Test(t, func(t *testing.T) { compareHolds(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func compareHolds(t *testing.T, draw *rand.Rand) {
	memory := weir.NewMemory(weir.MemoryOptions{})
	m := &model{used: map[int64]int64{}, dead: map[int]bool{}}
	var daemons []*holding
	var engines []*failing
	begin := func() {
		d, engine := killable(t, memory)
		daemons, engines = append(daemons, d), append(engines, engine)
	}
	begin()
	begin()
	for step := range 120 {
		at := len(daemons) - 1 - draw.IntN(2)
		d := daemons[at]
		done := ""
		switch p := draw.IntN(20); {
		case p < 7:
			cost := max(0, draw.Int64N(900)-200) // or 0
			done = holdBoth(t, m, d, at, cost, time.Duration(1+draw.IntN(180))*time.Second)
		case p < 13 && len(m.holds) > 0:
			h := m.holds[len(m.holds)-1-draw.IntN(min(len(m.holds), 8))]
			actual := draw.Int64N(400)
			stood, err := d.Commit(t.Context(), domain, h.id, d.asks(actual))
			done = fmt.Sprintf("commit %d of %+v: %v", actual, *h, stood)
			if want := m.commit(h, actual); err != nil || stood != want {
				t.Errorf("%s (%v), want %v", done, err, want)
			}
		case p == 13:
			cost := draw.Int64N(300)
			done = fmt.Sprintf("report %d", cost)
			if err := d.Report(t.Context(), d.asks(cost)); err != nil {
				t.Error(err)
			}
			m.used[windowOf(time.Now())] += cost
		case p == 14 && at == len(daemons)-1:
			done = "a daemon dies, and another begins"
			engines[at-1].fails(always)
			m.dead[at-1] = true
			begin()
		default:
			time.Sleep(time.Duration(draw.Int64N(int64(100 * time.Second))))
			done = "time passes"
		}
		synctest.Wait()
		m.pass()
		made, err := daemons[len(daemons)-1].Do(t.Context(), weir.Call{Op: weir.OpPeek, Requests: d.asks(1)})
		if want := max(0, modelLimit-m.used[windowOf(time.Now())]); err != nil || made.Remaining != want {
			t.Fatalf("step %d, %s: %d are left (%v), want %d", step, done, made.Remaining, err, want)
		}
	}
}

// holdBoth holds in the model and in a daemon.
func holdBoth(t *testing.T, m *model, d *holding, daemon int, cost int64, life time.Duration) string {
	t.Helper()
	now := time.Now()
	d.o.Life = life
	h := &modelHold{cost: min(cost, modelLimit/2), window: windowOf(now), ends: now.Add(life), known: now.Add(life + time.Minute), daemon: daemon}
	var err error
	if cost == 0 {
		h.id, err = d.HoldNone(t.Context(), domain, d.asks(1), life)
	} else {
		h.id, err = d.Hold(t.Context(), domain, d.asks(cost), d.o)
	}
	fits := m.used[h.window]+max(h.cost, 1) <= modelLimit
	if err != nil || fits != (h.id != "") {
		t.Errorf("a hold of %d: got %q (%v), and it fits: %v", cost, h.id, err, fits)
	}
	if fits {
		m.used[h.window] += h.cost
		m.holds = append(m.holds, h)
	}
	return fmt.Sprintf("hold %+v", *h)
}
