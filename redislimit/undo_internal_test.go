package redislimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// undoing is an engine with a clock that the test sets, and takes that the test undoes later.
type undoing struct {
	*testing.T
	*Engine
	now int64 // us
}

func newUndoing(t *testing.T) *undoing {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{redistest.Start(t).Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	u := &undoing{T: t, now: 1_700_000_000_000_000}
	if u.Engine, err = New(client, Options{Clock: func() int64 { return u.now * 1000 }}); err != nil {
		t.Fatal(err)
	}
	return u
}

// take takes n units and returns what undoes them.
func (u *undoing) take(limit weir.Limit, n int64) (undo func()) {
	u.Helper()
	rule, err := weir.NewRule("r", limit)
	if err != nil {
		u.Fatal(err)
	}
	parts, _, err := u.parts(nil, []weir.Request{rule.For("k", n)}, 0)
	if err != nil {
		u.Fatal(err)
	}
	taken, err := u.askLane(context.Background(), wire.Decision{Op: wire.OpTake}, parts)
	if err != nil || !taken.Admitted {
		u.Fatalf("take of %d of %v: admitted %v, %v", n, limit, taken.Admitted, err)
	}
	return func() { u.undo(&taken) }
}

func (u *undoing) undo(taken *wire.Decision) {
	u.Helper()
	s := calls.NewSubmission(taken.Undos(1)...)
	if err := u.calls.Ask(context.Background(), s); err != nil {
		u.Fatal(err)
	}
	for _, d := range s.Decisions {
		if d.Err != nil {
			u.Fatal(d.Err)
		}
	}
}

// left checks the units that remain.
func (u *undoing) left(what string, limit weir.Limit, want int64) {
	u.Helper()
	rule, err := weir.NewRule("r", limit)
	if err != nil {
		u.Fatal(err)
	}
	d, err := u.Peek(context.Background(), rule.For("k", 0))
	if err != nil || d.Remaining != want {
		u.Errorf("%v, %s: %d units remain (%v), want %d", limit, what, d.Remaining, err, want)
	}
}

func (u *undoing) pass(d time.Duration) { u.now += int64(d / time.Microsecond) }

// An undo brings back only what is certainly still outstanding: units that came back in the meantime do not come back
// twice, and no other take is touched.
func TestAnUndoBringsBackOnlyWhatIsOutstanding(t *testing.T) {
	u := newUndoing(t)

	bucket := weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 30}
	undo := u.take(bucket, 28)
	u.pass(time.Second)
	u.take(bucket, 5)
	u.left("10 of 28 and 5 units are back", bucket, 7)
	undo()
	u.left("an undo after a second", bucket, 7+18)
	u.pass(time.Hour)
	undo = u.take(bucket, 20)
	u.pass(2 * time.Second)
	u.take(bucket, 30)
	undo()
	u.left("an undo when all units are back", bucket, 0)
	u.pass(time.Hour)
	undo = u.take(bucket, 20)
	u.take(weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 30}, 1)
	u.pass(time.Microsecond)
	u.take(bucket, 1)
	undo()
	u.left("an undo after two conversions", bucket, 30-20-1-1)

	u.pass(time.Hour)
	leaky := weir.LeakyBucket{Rate: weir.PerSecond(10), Queue: 29}
	undo = u.take(leaky, 10)
	u.pass(500 * time.Millisecond)
	undo()
	u.left("an undo of the newest take", leaky, 30)
	undo = u.take(leaky, 10)
	u.take(leaky, 1)
	undo()
	u.left("an undo of an earlier take", leaky, 19)

	u.pass(time.Hour)
	for _, limit := range []weir.Limit{weir.FixedWindow{Rate: weir.PerHour(30)}, weir.Cycle{Rate: weir.PerHour(30)}} {
		undo = u.take(limit, 10)
		u.take(limit, 3)
		undo()
		u.left("an undo in the same window", limit, 27)
		undo = u.take(limit, 10)
		u.pass(time.Hour)
		u.take(limit, 5)
		undo()
		u.left("an undo in the next window", limit, 25)
		u.pass(24 * time.Hour)
	}

	sliding := weir.SlidingWindow{Rate: weir.PerHour(30)}
	u.now -= u.now % int64(time.Hour/time.Microsecond)
	undo = u.take(sliding, 20)
	u.pass(time.Hour + 30*time.Minute)
	u.take(sliding, 3)
	u.left("half of 20 units weigh", sliding, 30-10-3)
	undo()
	u.left("an undo in the next window", sliding, 30-3)
	u.pass(24 * time.Hour)

	for _, limit := range []weir.Limit{weir.SlidingLog{Rate: weir.PerHour(30)}, weir.RateGate{Rate: weir.PerHour(30)}} {
		undo = u.take(limit, 10)
		u.pass(time.Second)
		u.take(limit, 7)
		undo()
		undo()
		u.left("two undos of one take", limit, 30-7)
		undo = u.take(limit, 5)
		u.pass(time.Hour)
		u.take(limit, 9)
		undo()
		u.left("an undo when the units have left", limit, 30-9)
		u.pass(24 * time.Hour)
	}
}

// The clock of the server may be set back between a take and its undo. The time that the caller knows to have passed
// counts in any case.
func TestAnUndoCountsTheTimeOfItsCaller(t *testing.T) {
	u := newUndoing(t)
	bucket := weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 30}
	rule, err := weir.NewRule("r", bucket)
	if err != nil {
		t.Fatal(err)
	}
	parts, _, err := u.parts(nil, []weir.Request{rule.For("k", 20)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := u.askLane(t.Context(), wire.Decision{Op: wire.OpTake}, parts)
	if err != nil || !taken.Admitted {
		t.Fatalf("take: admitted %v, %v", taken.Admitted, err)
	}
	taken.Sent = time.Now().Add(-time.Hour)
	u.undo(&taken)
	u.left("an undo an hour later by the caller's clock", bucket, 10)
}

// recording is a Sender that admits everything after 10 ms, and keeps the keys of its calls.
type recording struct {
	admitting
	keys *[]string
}

func (r recording) Send(ctx context.Context, words ...string) (string, error) {
	for _, key := range words[3 : len(words)-1] {
		*r.keys = append(*r.keys, strings.Clone(key))
	}
	return r.admitting.Send(ctx, words...)
}

// Later takes use the memory of answered ones, but not that of a take whose caller has gone.
func TestTheUndoOfALateTakeNamesItsKeyAfterOtherTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recording{admitting{10 * time.Millisecond}, new([]string)}
		e, err := NewWith(r, Options{Flights: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		rule := mustRule(t, "r=token bucket 1000/h")
		for i := range 20 {
			*r.keys = nil
			late := fmt.Sprint("late ", i)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if _, err := e.Take(ctx, rule.For(late, 1)); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got error %v, want the deadline's", err)
			}
			cancel()
			for j := range 3 {
				if _, err := e.Take(t.Context(), rule.For(fmt.Sprint("later key of ", i, j), 1)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second) // in virtual time, for the undo
			synctest.Wait()
			isLate := func(key string) bool { return strings.HasSuffix(key, ":"+string(stored.AppendEscaped(nil, late))) }
			if i := slices.IndexFunc(*r.keys, isLate); i < 0 || !slices.ContainsFunc((*r.keys)[i+1:], isLate) {
				t.Errorf("the calls have the keys %q, want that of %q in a take and in an undo", *r.keys, late)
			}
		}
	})
}
