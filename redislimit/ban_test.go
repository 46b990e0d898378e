package redislimit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// A refusal that counts towards a ban is remembered by its identity: asked again, it has its first answer and counts once.
func TestARefusalWithAnIdentityStrikesOnce(t *testing.T) {
	now := time.Unix(1_700_000_000, 0).UnixNano()
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{Clock: func() int64 { return now }})
	q := mustRule(t, "r=fixed window 1/d and ban 48h after 3/h").For("k", 1)
	once := func(identity string) weir.Decision {
		a, err := engine.Do(t.Context(), weir.Call{Identity: identity, Requests: []weir.Request{q}})
		if err != nil {
			t.Fatal(err)
		}
		return a.Decision
	}
	once("admitted")
	first := once("refused")
	for range 5 {
		now += int64(time.Second)
		if again := once("refused"); again != first {
			t.Errorf("asked again: got %+v, want %+v", again, first)
		}
	}
	if d := once("refused too"); d.Cause != weir.ByCount {
		t.Errorf("the second refusal: got %+v, want no ban", d)
	}
	begun := once("the third")
	now += int64(time.Second)
	if again := once("the third"); !begun.BanBegun || again != begun {
		t.Errorf("the third refusal: got %+v, and again %+v; want that it begins a ban", begun, again)
	}
}

// A caller that leaves has its take undone by its identity. If that take was refused and struck, nothing comes back.
func TestTheUndoOfARefusalThatStruckGivesNothingBack(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	rule := mustRule(t, "r=fixed window 4/300d and ban 48h after 3/h")
	if d, err := engine.Take(t.Context(), rule.For("k", 3)); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	parts, at, err := engine.parts(nil, []weir.Request{rule.For("k", 2)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	refused := calls.NewSubmission(asking(wire.OpTake, 1, parts, at))
	refused.Decisions[0].Identify(&engine.keys, "left")
	engine.calls.Run([]*calls.Submission{refused})
	d := &refused.Decisions[0]
	if refused.Err != nil || d.Err != nil || d.Admitted {
		t.Fatalf("the take: admitted %t, %v, %v", d.Admitted, refused.Err, d.Err)
	}
	undo := calls.NewSubmission(d.UndoOf(1))
	engine.calls.Run([]*calls.Submission{undo})
	if undo.Err != nil || undo.Decisions[0].Err != nil {
		t.Fatalf("the undo: %v, %v", undo.Err, undo.Decisions[0].Err)
	}
	if err := wantRemaining(engine, rule.For("k", 0), 1); err != nil {
		t.Error(err)
	}
}

func dialBan(t *testing.T, addr string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// The value of a ban has a key of its own, which expires with its memory, and an admitted call writes none.
func TestABanIsStoredAsLongAsItMatters(t *testing.T) {
	server := redistest.Start(t)
	engine, client := openFor(t, "redis://"+server.Addr, Options{Prefix: "p"}), dialBan(t, server.Addr)
	q := mustRule(t, "r=fixed window 1/300d and ban 1m up to 1h after 2/10m").For("k", 1)
	for i, want := range []time.Duration{0, 10 * time.Minute, time.Hour + time.Minute} {
		if _, err := engine.Take(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		keys, err := client.Do(t.Context(), client.B().Keys().Pattern("p:*:b:*").Build()).AsStrSlice()
		if err != nil || len(keys) != min(i, 1) {
			t.Fatalf("after %d takes: keys %q, %v", i+1, keys, err)
		}
		if i == 0 {
			continue
		}
		left, err := client.Do(t.Context(), client.B().Pttl().Key(keys[0]).Build()).AsInt64()
		if got := time.Duration(left) * time.Millisecond; err != nil || got > want+time.Minute || got < want-time.Minute {
			t.Errorf("after %d takes: %s expires in %v, want about %v (%v)", i+1, keys[0], got, want, err)
		}
	}
}

func TestADamagedBanIsAnError(t *testing.T) {
	server := redistest.Start(t)
	engine, client := openFor(t, "redis://"+server.Addr, Options{Prefix: "p"}), dialBan(t, server.Addr)
	q := mustRule(t, "r=fixed window 1/300d and ban 1m after 2/10m").For("k", 1)
	for range 2 {
		if _, err := engine.Take(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := client.Do(t.Context(), client.B().Keys().Pattern("p:*:b:*").Build()).AsStrSlice()
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys %q, %v", keys, err)
	}
	for _, value := range []string{"", "\x10", "\x10" + strings.Repeat("\xff", 32), "\x10" + strings.Repeat("x", 31), "\x20" + strings.Repeat("\x00", 32)} {
		if err := client.Do(t.Context(), client.B().Set().Key(keys[0]).Value(value).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		if d, err := engine.Take(t.Context(), q); err == nil || weir.WasCounted(err) != weir.CountedNo {
			t.Errorf("%q: got %+v and %v, want an error that counted nothing", value, d, err)
		}
	}
}

// A call with a ban is one call of the script, however many rules it has.
func TestACallWithBansIsOneTrip(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	var requests []weir.Request
	for i := range 8 {
		requests = append(requests, mustRule(t, fmt.Sprintf("r%d=fixed window 1/300d and 1/h and ban 1m after 2/10m", i)).For("k", 1))
	}
	before := engine.Stats()
	for range 3 {
		if _, err := engine.Take(t.Context(), requests...); err != nil {
			t.Fatal(err)
		}
	}
	if after := engine.Stats(); after.Calls-before.Calls != 3 {
		t.Errorf("3 calls took %d trips: %+v", after.Calls-before.Calls, after)
	}
}
