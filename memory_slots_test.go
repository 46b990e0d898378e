package weir_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// slotsForever are released only by their holders.
var slotsForever = weir.Concurrency{Slots: 2}

// flood asks for a slot of each of n new keys, and returns the keys that got one. The engine refuses all others for
// want of room.
func flood(t *testing.T, e weir.Engine, rule *weir.Rule, name string, n int) (held []string) {
	t.Helper()
	for i := range n {
		key := fmt.Sprint(name, i)
		d, err := e.Take(t.Context(), rule.For(key, 1))
		switch {
		case err == nil && d.Allowed:
			held = append(held, key)
		case !errors.Is(err, weir.ErrNoRoom):
			t.Fatalf("key %s: got %+v and %v, want a slot or ErrNoRoom", key, d, err)
		}
	}
	return held
}

func giveBack(t *testing.T, e weir.Engine, rule *weir.Rule, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, err := e.Return(t.Context(), rule.For(key, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewKeysAreRefusedWithTheReasonWhereSlotsWithoutALeaseFillTheTable(t *testing.T) {
	const most = 640
	var log bytes.Buffer
	rule, other := cappedRule(t, slotsForever), cappedRule(t, cappedLimits[0])
	engine := weir.NewMemory(weir.MemoryOptions{Clock: still, MaxKeys: most, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	held := flood(t, engine, rule, "flood", 20*most)
	if len(held) != most {
		t.Fatalf("%d keys hold slots, want %d", len(held), most)
	}
	for verb, ask := range map[string]func(context.Context, ...weir.Request) (weir.Decision, error){
		"take": engine.Take, "peek": engine.Peek, "record": engine.Record,
	} {
		_, err := ask(t.Context(), other.For("budget", 1), rule.For("new", 1))
		want := fmt.Sprintf(`weir: %s: rule "r": no room for another key: all %d keys that MaxKeys allows hold slots without a lease`, verb, most)
		if err == nil || err.Error() != want || weir.MayHaveCounted(err) {
			t.Errorf("a new key: got %v, want %s, and that nothing was counted", err, want)
		}
	}
	if n := unitsOf(t, engine, other, "budget", 3); n != 2 {
		t.Errorf("%d units beside slots that were refused, want both: all or nothing", n)
	}
	if n := unitsOf(t, engine, rule, held[0], 2); n != 1 {
		t.Errorf("a key that holds a slot of two got %d more, want 1", n)
	}
	for _, cost := range []int64{0, -1} {
		if d, err := signed(t.Context(), engine, rule.For("new", cost)); err != nil || !d.Allowed || d.Remaining != 2 {
			t.Errorf("recording %d for a key that holds nothing: got %+v and %v, want 2 remaining", cost, d, err)
		}
	}
	if s := engine.Stats(); s.Keys != most+1 || s.Shared != 0 || s.Overflow != 0 {
		t.Errorf("%d keys, %d shared states, %d overflown, want %d and none", s.Keys, s.Shared, s.Overflow, most+1)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "slots without a lease keep theirs") {
		t.Errorf("the log says %q, want one line", got)
	}
}

// Every slot that comes back makes room, also after a restart: no slot is held without a holder. The first does so at
// once; for the rest a full shard looks through a segment each millisecond.
func TestSlotsWithoutALeaseThatComeBackMakeRoomForNewKeys(t *testing.T) {
	const most = 640
	rule, now := cappedRule(t, slotsForever), still()
	ticking := func() int64 { now += int64(10 * time.Microsecond); return now }
	options := weir.MemoryOptions{Clock: ticking, MaxKeys: most}
	engine := weir.NewMemory(options)
	for round := range 3 {
		held := flood(t, engine, rule, fmt.Sprint("round", round, "-"), 20*most)
		if len(held) != most {
			t.Fatalf("round %d: %d keys hold slots, want %d", round, len(held), most)
		}
		var file bytes.Buffer
		if err := engine.Save(&file); err != nil {
			t.Fatal(err)
		}
		loaded, err := weir.LoadMemory(&file, options)
		if err != nil {
			t.Fatal(err)
		}
		engine = loaded
		if n := len(flood(t, engine, rule, "before", 20*most)); n != 0 {
			t.Fatalf("round %d: %d new keys got slots of a full table", round, n)
		}
		giveBack(t, engine, rule, held[0])
		one := flood(t, engine, rule, "after", 20*most)
		if len(one) != 1 {
			t.Fatalf("round %d: %d new keys got slots after one came back", round, len(one))
		}
		giveBack(t, engine, rule, append(held[1:], one...)...)
	}
}

func TestReservedSlotsWithoutALeaseMakeRoomWhenCancelled(t *testing.T) {
	rule := cappedRule(t, slotsForever)
	engine := weir.NewMemory(weir.MemoryOptions{Clock: still, MaxKeys: 64})
	flood(t, engine, rule, "flood", 64*20)
	if _, err := engine.Reserve(t.Context(), rule.For("new", 1)); !errors.Is(err, weir.ErrNoRoom) {
		t.Fatalf("reserving in a full table: got %v, want ErrNoRoom", err)
	}
	held, err := engine.Reserve(t.Context(), rule.For("flood0", 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	giveBack(t, engine, rule, "flood0")
	if n := len(flood(t, engine, rule, "new", 64*20)); n != 1 {
		t.Errorf("%d new keys got slots after those of one came back, want 1", n)
	}
}

// Slots with a lease come back in time whatever their holders do, so they are shared.
func TestSlotsWithALeaseAreSharedWhereKeysFindNoRoom(t *testing.T) {
	now := still()
	rule := cappedRule(t, weir.Concurrency{Slots: 2, Lease: 2e9})
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }, MaxKeys: 64})
	count := func(name string) (n int) {
		for i := range 64 * 20 {
			n += unitsOf(t, engine, rule, fmt.Sprint(name, i), 3)
		}
		return n
	}
	if got, bound := count("flood"), 2*(64+groups); got > bound || got < 2*64 {
		t.Errorf("the flood got %d slots, want %d to %d", got, 2*64, bound)
	}
	now += 2e9
	if got := count("later"); got < 2*64 {
		t.Errorf("new keys got %d slots after all leases ended, want %d or more", got, 2*64)
	}
}
