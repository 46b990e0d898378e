package redislimit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// locked returns when a condition on what the callers of an engine do holds.
func locked(t *testing.T, e *Engine, what string, reports func() bool) {
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

// Callers that leave one after the other do not put the next question of their process off.
func TestTheNextCallerOfAProcessAsksWhenTheOneThatLeftWouldHave(t *testing.T) {
	_, request, first, second := standTwo(t, redistest.Start(t))
	locked(t, first.stand.engine, "the engine hears signals", first.stand.engine.standing.signals.work)
	if _, err := first.Reserve(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	due := first.next
	first.Leave()
	if second.next.After(due) {
		t.Errorf("the next caller asks %v after the instant at which the first one would have", second.next.Sub(due))
	}
}

// standIn returns a caller that has asked for the request, and is refused.
func standIn(t *testing.T, e *Engine, request weir.Request) *ticket {
	t.Helper()
	place := e.StandInLine(request).(*ticket)
	askAgain(t, place, request)
	return place
}

func askAgain(t *testing.T, place *ticket, request weir.Request) {
	t.Helper()
	if r, err := place.Reserve(t.Context(), request); err != nil || r.Decision.Allowed {
		t.Fatalf("Reserve: %+v, %v; want a refusal", r, err)
	}
}

// awaitHearing has callers of engines stand in another line until all engines hear signals.
func awaitHearing(t *testing.T, request weir.Request, engines ...*Engine) {
	t.Helper()
	request.Key += " of another line"
	if _, err := engines[0].Reserve(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	for _, e := range engines {
		standIn(t, e, request)
		locked(t, e, "the engine hears signals", e.standing.signals.work)
	}
}

// leaveUnseen has a caller leave and puts its ticket back in line, as if Redis had not heard of its leaving, or before its
// question.
func leaveUnseen(t *testing.T, server *redistest.Server, place *ticket) {
	t.Helper()
	key := place.stand.lines[0]
	line, _ := server.Do("GET", key).(string)
	place.Leave()
	eventually(t, "the ticket leaves", func() error {
		if now, _ := server.Do("GET", key).(string); len(now) >= len(line) {
			return errors.New("it is in line")
		}
		return nil
	})
	server.Do("SET", key, line, "PX", "10000")
}

// A released slot goes to the next caller at once, although the line still has the ticket of one that has left.
func TestATicketThatStayedInLineDelaysNoCaller(t *testing.T) {
	for name, stand := range map[string]func(t *testing.T, request weir.Request, one, other *Engine) (leaves, next *ticket){
		"the last of its process": func(t *testing.T, request weir.Request, one, other *Engine) (leaves, next *ticket) {
			return standIn(t, one, request), standIn(t, other, request)
		},
		"one whose process has another caller": func(t *testing.T, request weir.Request, one, other *Engine) (leaves, next *ticket) {
			leaves, next = standIn(t, one, request), standIn(t, other, request)
			standIn(t, one, request)
			return leaves, next
		},
		"one that came second and asked first": func(t *testing.T, request weir.Request, one, other *Engine) (leaves, next *ticket) {
			next = one.StandInLine(request).(*ticket)
			leaves = standIn(t, one, request)
			askAgain(t, next, request)
			return leaves, next
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			server := redistest.Start(t)
			url := "redis://" + server.Addr
			one, other := openFor(t, url, Options{}), openFor(t, url, Options{})
			request := mustRule(t, "slots=concurrency 1 lease 1h").For("k", 1)
			awaitHearing(t, request, one, other)
			held, err := openFor(t, url, Options{}).Reserve(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			leaves, next := stand(t, request, one, other)
			leaveUnseen(t, server, leaves)
			askAgain(t, next, request) // and then not before a second
			began := time.Now()
			if err := held.Done(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for allowed := false; !allowed; {
				if err := next.Wait(ctx); err != nil {
					t.Fatal(err)
				}
				r, err := next.Reserve(ctx, request)
				if err != nil {
					t.Fatal(err)
				}
				allowed = r.Decision.Allowed
			}
			if took := time.Since(began); took > longestSleep*3/4 {
				t.Errorf("the next caller went %v after the release", took)
			}
		})
	}
}

// failing is a client whose calls fail while a test says so.
type failing struct {
	Sender
	fails atomic.Int64 // how many calls still fail
}

func (f *failing) Send(ctx context.Context, command ...string) (string, error) {
	if f.fails.Add(-1) >= 0 {
		return "", errors.New("the connection is lost")
	}
	return f.Sender.Send(ctx, command...)
}

func failingEngine(t *testing.T) (*redistest.Server, *Engine, *failing) {
	t.Helper()
	server := redistest.Start(t)
	sender := &failing{Sender: newCountingSender(t, server)}
	engine, err := NewWith(sender, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return server, engine, sender
}

// A caller that leaves while no call succeeds leaves as soon as one does, long before its ticket dies.
func TestALeavingThatFailedIsRepeated(t *testing.T) {
	server, engine, sender := failingEngine(t)
	request := mustRule(t, "slots=concurrency 1 lease 1h").For("k", 1)
	if _, err := engine.Reserve(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	place := standIn(t, engine, request)
	sender.fails.Store(3)
	place.Leave()
	eventually(t, "the ticket leaves", func() error {
		if line := server.Do("GET", place.stand.lines[0]); line != nil {
			return fmt.Errorf("the line is %q", line)
		}
		return nil
	})
	if left := sender.fails.Load(); left >= 0 { // otherwise the ticket has died
		t.Errorf("the leaving was not repeated until a call succeeded: %d more calls would fail", left)
	}
	eventually(t, "nothing is left to do", func() error {
		if n := engine.standing.leaving.Load(); n != 0 {
			return fmt.Errorf("%d tickets leave", n)
		}
		return nil
	})
}

// A question that has no answer may have put a ticket in line, so its caller leaves. One that was never sent has not.
func TestACallerLeavesALineThatItMayBeIn(t *testing.T) {
	_, engine, sender := failingEngine(t)
	request := mustRule(t, "slots=concurrency 1 lease 1h").For("k", 1)
	place := engine.StandInLine(request).(*ticket)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := place.Reserve(ended, request); err == nil || place.inside {
		t.Errorf("after a question that was not sent: %v, in line: %v", err, place.inside)
	}
	sender.fails.Store(1)
	if _, err := place.Reserve(t.Context(), request); err == nil || !place.inside {
		t.Errorf("after a question without an answer: %v, in line: %v", err, place.inside)
	}
}

// The first caller of a line misses its signal. The question of another process, which finds the slot free, makes up for it,
// even if it was the one whose ticket was first.
func TestACallerThatFindsFreeSlotsCallsTheFirstInLine(t *testing.T) {
	for _, stays := range []bool{false, true} {
		t.Run(fmt.Sprintf("a ticket stayed %v", stays), func(t *testing.T) {
			server := redistest.Start(t)
			url := "redis://" + server.Addr
			one, other := openFor(t, url, Options{}), openFor(t, url, Options{})
			request := mustRule(t, "slots=concurrency 1 lease 1h").For("k", 1)
			awaitHearing(t, request, one, other)
			if _, err := openFor(t, url, Options{}).Reserve(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			leaves, first, second := standIn(t, one, request), standIn(t, other, request), standIn(t, one, request)
			if stays {
				leaveUnseen(t, server, leaves)
			} else {
				leaves.Leave()
				locked(t, other, "the first caller is called when one has left", func() bool { return first.called })
			}
			askAgain(t, first, request)
			server.Do("DEL", first.stand.slots.key)
			askAgain(t, second, request)
			locked(t, other, "the first caller is called", func() bool { return first.called })
			if now, _ := first.due(); !now {
				t.Error("the first caller does not ask now")
			}
		})
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
	engine, other := openFor(t, "redis://"+server.Addr, Options{}), openFor(t, "redis://"+server.Addr, Options{})
	for _, e := range []*Engine{engine, other} {
		stand(e, "another")
		locked(t, e, "the engine hears signals", e.standing.signals.work)
	}
	stand(engine, "k") // is admitted
	first, second, third := stand(engine, "k"), stand(other, "k"), stand(engine, "k")
	for _, one := range []struct{ leaves, next *ticket }{{first, second}, {second, third}} {
		if one.next.leads {
			t.Error("a caller behind another one asks again")
		}
		one.leaves.Leave()
		locked(t, one.next.stand.engine, "the next caller knows when to ask", func() bool { return one.next.leads })
	}
}

// An engine whose callers leave the lines of many keys within seconds knows a bounded number of these lines.
func TestEmptiedStandsAreBounded(t *testing.T) {
	var all standing
	for i := range mostUndoing + 100 {
		all.end(&stand{asks: strconv.Itoa(i), stayed: true})
	}
	if n := max(len(all.emptied), len(all.oldest)); n != mostUndoing {
		t.Errorf("%d stands are known, want %d", n, mostUndoing)
	}
	if newest := strconv.Itoa(mostUndoing + 99); all.emptied[newest] == nil {
		t.Errorf("the newest stand is not known")
	}
}
