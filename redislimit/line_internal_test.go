package redislimit

import (
	"errors"
	"sync"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// standTwo returns two callers of one process that stand in line for a busy slot, and the slot.
func standTwo(t *testing.T, server *redistest.Server) (engine *Engine, request weir.Request, first, second *ticket) {
	t.Helper()
	engine = openFor(t, "redis://"+server.Addr, Options{})
	request = mustRule(t, "slots=concurrency 1 lease 1h").For("k", 1)
	if _, err := engine.Reserve(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	first, second = engine.StandInLine(request).(*ticket), engine.StandInLine(request).(*ticket)
	for _, place := range []*ticket{first, second} {
		if r, err := place.Reserve(t.Context(), request); err != nil || r.Decision.Allowed {
			t.Fatalf("Reserve of a busy slot: %+v, %v", r, err)
		}
	}
	return engine, request, first, second
}

// A ticket whose leaving Redis did not learn goes with the next question of its process.
func TestATicketThatLeftUnseenIsDropped(t *testing.T) {
	server := redistest.Start(t)
	_, request, first, second := standTwo(t, server)
	first.gone()
	if _, err := second.Reserve(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if q := second.stand.in(lineTurn, second); q.oldest != second.number {
		t.Errorf("the oldest ticket is %v, want %v", q.oldest, second.number)
	}
	value, _ := server.Do("GET", second.stand.lines[0]).(string)
	if tickets := (len(value) - 2 - 36) / 9; tickets != 1 {
		t.Errorf("%d tickets are in line, want that of the second caller", tickets)
	}
}

// When Redis has lost the line, all callers enter it again, and not only the one that asked.
func TestCallersEnterALostLineAgain(t *testing.T) {
	server := redistest.Start(t)
	_, request, first, second := standTwo(t, server)
	if now, _ := second.due(); now {
		t.Error("the second caller has to ask before the line is lost")
	}
	server.Do("DEL", second.stand.lines[0])
	if _, err := first.Reserve(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if now, _ := second.due(); !now {
		t.Error("the second caller does not have to ask after the line is lost")
	}
}

// Calls of many callers that stand in a full line do a bounded amount of work.
func TestAFullLineTakesABoundedAmountOfWork(t *testing.T) {
	const most = 1000 // us
	counting := newCountingSender(t, redistest.Start(t))
	engine, err := NewWith(counting, Options{})
	if err != nil {
		t.Fatal(err)
	}
	request := mustRule(t, "slots=concurrency 1 lease 1h").For("k", 1)
	if _, err := engine.Reserve(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var callers sync.WaitGroup
		for range mostTickets {
			callers.Go(func() {
				if r, err := engine.StandInLine(request).Reserve(t.Context(), request); err != nil || r.Decision.Allowed {
					t.Errorf("Reserve of a busy slot: %+v, %v", r, err)
				}
			})
		}
		callers.Wait()
		entries, bytes, calls := counting.most()
		took := entries*microsOfEntry + bytes/1024*microsOfKB
		t.Logf("%d calls: at most %.0f entries and %.0f KB, %.0f us", calls, entries, bytes/1024, took)
		if took > most {
			t.Errorf("a call takes %.0f us, want at most %d", took, most)
		}
	}
}

// Calls of one process can overtake one another, so that its second caller is first in line. That caller then asks again
// in time, although it is not the first of its process.
func TestTheFirstInLineAsksAgainThoughItCameSecond(t *testing.T) {
	engine, err := NewWith(newCountingSender(t, redistest.Start(t)), Options{}) // hears no signals
	if err != nil {
		t.Fatal(err)
	}
	request := mustRule(t, "slots=concurrency 1 lease 1h").For("k", 1)
	if _, err := engine.Reserve(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	first, second := engine.StandInLine(request).(*ticket), engine.StandInLine(request).(*ticket)
	for _, place := range []*ticket{second, first} {
		if _, err := place.Reserve(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if now, pause := second.due(); !now && pause <= 0 {
		t.Error("the caller that is first in line does not ask again")
	}
}

// A caller that leaves the line passes the next one the instant at which the rate admits it.
func TestTheNextCallerKnowsWhenTheRateAdmitsIt(t *testing.T) {
	server := redistest.Start(t)
	slots, rate := mustRule(t, "slots=concurrency 5 lease 1h"), mustRule(t, "rate=rate gate 1/h")
	stand := func(e *Engine, key string) *ticket {
		place := e.StandInLine(slots.For(key, 1), rate.For(key, 1)).(*ticket)
		if _, err := place.Reserve(t.Context(), slots.For(key, 1), rate.For(key, 1)); err != nil {
			t.Fatal(err)
		}
		return place
	}
	locked := func(e *Engine, what string, reports func() bool) {
		t.Helper()
		eventually(t, what, func() error {
			e.standing.mu.Lock()
			defer e.standing.mu.Unlock()
			if !reports() {
				return errors.New("not yet")
			}
			return nil
		})
	}
	engine, other := openFor(t, "redis://"+server.Addr, Options{}), openFor(t, "redis://"+server.Addr, Options{})
	for _, e := range []*Engine{engine, other} {
		stand(e, "another")
		locked(e, "the engine hears signals", e.standing.signals.work)
	}
	stand(engine, "k") // is admitted
	first, second, third := stand(engine, "k"), stand(other, "k"), stand(engine, "k")
	for _, one := range []struct{ leaves, next *ticket }{{first, second}, {second, third}} {
		if one.next.leads {
			t.Error("a caller behind another one asks again")
		}
		one.leaves.Leave()
		locked(one.next.stand.engine, "the next caller knows when to ask", func() bool { return one.next.leads })
	}
}
