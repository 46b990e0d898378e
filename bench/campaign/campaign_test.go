package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/testprocess"
	"github.com/weirflow/weir/redislimit"

	"github.com/weirflow/weir/bench/internal/trial"
)

// The processes of a campaign run the test's own program.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == processFlag {
		main()
		return
	}
	os.Exit(m.Run())
}

// start is when the made-up campaigns of the tests begin: at a border of all windows.
const start = int64(1_700_000_000_000_000 / 70_000_000 * 70_000_000)

// ledger returns a book of one subject with records that a test makes up.
func ledger(t *testing.T, limit string, u use, faults ...fault) *book {
	t.Helper()
	rule, err := weir.ParseRule("r=" + limit)
	if err != nil {
		t.Fatal(err)
	}
	all := []subject{{rule: rule, key: "k", use: u, bounds: trial.Bounds(rule.Limits(), time.Microsecond)}}
	return newBook(all, []int{3}, map[int]*world{worldCluster: {number: worldCluster, faults: faults}})
}

func (b *book) use(units int64, sent, answered time.Duration) {
	b.add(record{Kind: recordUsed, World: worldCluster, Units: units, Sent: start + sent.Microseconds(), Answered: start + answered.Microseconds()})
}

func promises(b *book) (list []string) {
	all, _ := b.check()
	for _, one := range all {
		list = append(list, one.Promise)
	}
	return list
}

const ms = time.Millisecond

// Each row is what a limit admits at most. One unit more, in the same call, is found.
func TestAnOverAdmissionIsFound(t *testing.T) {
	for limit, admitted := range map[string][3]int64{ // units at once; after half a second; after two seconds
		"token bucket 10/s burst 20":                   {20, 5, 15},
		"leaky bucket 10/s queue 9":                    {10, 5, 10},
		"sliding log 20/s":                             {12, 8, 20},
		"rate gate 20/s":                               {12, 8, 20},
		"fixed window 20/s":                            {12, 8, 20},
		"sliding window 20/s":                          {12, 8, 20},
		"cycle 20/s":                                   {12, 8, 20},
		"fixed window 100/s and token bucket 10/s":     {10, 5, 10},
		"sliding log 200/10s and token bucket 5/100ms": {5, 5, 5},
	} {
		for extra := range 4 {
			b := ledger(t, limit, useTake)
			for i, at := range []time.Duration{0, 500 * ms, 2000 * ms} {
				units := admitted[i]
				if i == extra {
					units++
				}
				b.use(units, at+1*ms, at+1*ms)
			}
			var want []string
			if extra < 3 {
				want = []string{promiseBound}
			}
			if got := promises(b); !slices.Equal(got, want) {
				t.Errorf("%s with a unit more in call %d: %v, want %v", limit, extra, got, want)
			}
		}
	}
}

// A call that was under way for long may have been decided at any time of it, so it counts only in windows that hold
// all of it.
func TestACallCountsInWindowsThatHoldAllOfIt(t *testing.T) {
	b := ledger(t, "sliding log 20/s", useTake)
	b.use(20, 0, 10*ms)
	b.use(20, 900*ms, 1005*ms)
	if got := promises(b); len(got) > 0 {
		t.Errorf("a call that may have been decided a second later: %v", got)
	}
	b.use(1, 901*ms, 1002*ms)
	if got := promises(b); len(got) != 1 {
		t.Errorf("21 units within 105 ms: %v, want it found", got)
	}
}

// What a fault grants is granted once, to the keys that it hit, at its time.
func TestAFaultGrantsWhatTheTableSays(t *testing.T) {
	failover := fault{Kind: "failover", From: start + 1_000_000, To: start + 2_000_000, Loses: true}
	for _, tt := range []struct {
		name  string
		lanes uint64
		loses bool
		more  int64
		want  int
	}{
		{"another burst after a failover", 1 << 3, true, 20, 0},
		{"a unit more", 1 << 3, true, 21, 1},
		{"a failover of another lane", 1 << 4, true, 20, 1},
		{"a fault that loses nothing", 1 << 3, false, 20, 1},
	} {
		f := failover
		f.Lanes, f.Loses = tt.lanes, tt.loses
		b := ledger(t, "token bucket 10/h burst 20", useTake, f)
		b.use(20, 1000*ms, 1500*ms)
		b.use(tt.more, 1500*ms, 1900*ms)
		if got := promises(b); len(got) != tt.want {
			t.Errorf("%s: %v, want %d broken promises", tt.name, got, tt.want)
		}
	}
	for _, tt := range []struct {
		name string
		use  use
		both int64
		more int64
		want int
	}{
		{"the rate while two masters answer", useTake, 1_000_000, 30, 0},
		{"a unit more than that", useTake, 1_000_000, 31, 1},
		{"one master after the other", useTake, 0, 21, 1},
		{"what flows in until the last booking of each is due", useBook, 1_000_000, 40, 0},
		{"a unit more than both book", useBook, 1_000_000, 41, 1},
		{"what flows in until the last booking from before a loss is due", useBook, 0, 30, 0},
		{"a unit more than is booked", useBook, 0, 31, 1},
	} {
		f := failover
		f.Lanes, f.Both = allLanes, tt.both
		b := ledger(t, "token bucket 10/s burst 20", tt.use, f)
		b.use(20, 1000*ms, 1001*ms)
		b.use(tt.more, 1001*ms, 1002*ms)
		if got := promises(b); len(got) != tt.want {
			t.Errorf("%s: %v, want %d broken promises", tt.name, got, tt.want)
		}
	}
	b := ledger(t, "token bucket 10/h burst 20", useTake, fault{From: start, To: start + 1000, Loses: true, Lanes: allLanes})
	b.use(40, 2*ms, 3*ms)
	if got := promises(b); len(got) != 1 {
		t.Errorf("two bursts long after a failover: %v, want it found", got)
	}
}

// Units given back may be used again, from the time of the return on.
func TestReturnedUnitsMayBeUsedAgain(t *testing.T) {
	for returned, want := range map[time.Duration]int{5 * ms: 0, 30 * ms: 1} {
		b := ledger(t, "fixed window 20/10s", useReturn)
		b.use(20, 1*ms, 2*ms)
		at := start + returned.Microseconds()
		b.add(record{Kind: recordReturned, World: worldCluster, Units: 3, Sent: at, Answered: at + 1000})
		b.use(3+int64(want), 20*ms, 21*ms)
		if got := promises(b); len(got) != want {
			t.Errorf("20 units, 3 returned after %v, and %d more: %v, want %d broken promises", returned, 3+want, got, want)
		}
	}
}

// The clocks of processes are set, so only the sum counts, by the highest time.
func TestAnOverAdmissionByClocksThatAreSetIsFound(t *testing.T) {
	most := int64(20 + 10*(1+2*mostAhead.Seconds()))
	for more, want := range map[int64]int{0: 0, 1: 1} {
		b := ledger(t, "token bucket 10/s burst 20", useClocked)
		b.use(1, 0, 1)
		b.use(most-1+more, 1000*ms, 1001*ms)
		if got := promises(b); len(got) != want {
			t.Errorf("%d units of %d: %v, want %d broken promises", most+more, most, got, want)
		}
	}
}

func TestSlotsHeldTwiceAreFound(t *testing.T) {
	for from, want := range map[time.Duration]int{100 * ms: 0, 99 * ms: 1} {
		b := ledger(t, "concurrency 2 lease 3s", useLine)
		take := func(id uint64, units int64, from, to time.Duration) {
			b.add(record{Kind: recordHeld, World: worldCluster, Units: units, ID: id, Sent: start, Answered: start + from.Microseconds()})
			b.add(record{Kind: recordFreed, World: worldCluster, ID: id, Sent: start + to.Microseconds()})
		}
		take(1, 2, 0, 100*ms)
		take(2, 1, from, 200*ms)
		if got := promises(b); len(got) != want {
			t.Errorf("2 slots to 100 ms and one from %v on: %v, want %d broken promises", from, got, want)
		}
	}
}

// The holder of a lost slot hears of it as late as the machine is.
func TestALostSlotIsHeldUntilItsHolderHearsOfIt(t *testing.T) {
	for _, tt := range []struct {
		how        string
		late, from time.Duration
		want       int
	}{
		{lost, 20 * ms, 56 * ms, 0},
		{lost, 20 * ms, 55 * ms, 1},
		{lost, 0, 95 * ms, 1},
		{released, 20 * ms, 99 * ms, 1},
	} {
		b := ledger(t, "concurrency 1 lease 3s", useLine)
		add := func(kind recordKind, id uint64, at time.Duration) {
			instant := start + at.Microseconds()
			b.add(record{Kind: kind, World: worldCluster, Units: 1, ID: id, Sent: instant, Answered: instant, What: tt.how})
		}
		add(recordHeld, 1, 0)
		add(recordHeld, 2, tt.from)
		add(recordFreed, 1, 100*ms)
		b.add(record{Kind: recordFreed, World: worldCluster, ID: 2, Sent: start + 200_000, What: released})
		b.add(record{Kind: recordBusy, Units: tt.late.Microseconds(), Sent: start, Answered: start})
		if got := promises(b); len(got) != tt.want {
			t.Errorf("%+v: %v, want %d broken promises", tt, got, tt.want)
		}
	}
}

// The slots of a process that forgot them stay taken until their lease ends.
func TestALeakedSlotIsFound(t *testing.T) {
	server := redistest.Start(t)
	all, err := subjects()
	if err != nil {
		t.Fatal(err)
	}
	r := &result{book: newBook(all, nil, map[int]*world{worldServer: {url: "redis://" + server.Addr}})}
	if got := r.leaked(0); len(got) > 0 {
		t.Fatalf("without a slot taken: %v", got)
	}
	engine, err := redislimit.Open("redis://"+server.Addr, redislimit.Options{Lanes: lanes, Prefix: prefixServer})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	i := slices.IndexFunc(all, func(s subject) bool { return s.use == useSlots })
	if d, err := engine.Take(t.Context(), all[i].request(1)); err != nil || !d.Allowed {
		t.Fatalf("Take: %+v, %v", d, err)
	}
	if got := r.leaked(0); len(got) != 1 || got[0].Subject != i || got[0].Promise != promiseLeaked {
		t.Errorf("with a slot of %v taken: %+v, want it found", &all[i], got)
	}
}

func TestAnErrorThatNoFaultExplainsIsFound(t *testing.T) {
	for what, want := range map[string]int{"Take: answered": 0, "Take: refused": 0, "Take: lost, perhaps counted": 0, "engine: calls": 0, "Take: damaged, counted": 1, "Take: refused, not counted": 1, "Take: a bug": 1} {
		b := ledger(t, "token bucket 10/s", useTake)
		b.add(record{Kind: recordCount, World: worldCluster, What: what, Units: 1})
		if got := promises(b); len(got) != want {
			t.Errorf("%s: %v, want %d broken promises", what, got, want)
		}
	}
}

// A campaign of some seconds, with its processes and a real server. It checks no times, which a busy machine makes late.
func TestACampaignOfSecondsKeepsItsPromises(t *testing.T) {
	testprocess.Require(t, "redis-server", "redis-server")
	c := &config{Trial: trial.Trial{Duration: 4 * time.Second, Seed: 5}, only: "server", processes: 2, details: t.TempDir() + "/details"}
	r, err := campaign(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"Take", "Acquire", "Acquire with a rate", "Wait for a booking"} {
		if calls := r.count(verb + ": answered"); calls == 0 || len(r.worlds[worldServer].faults) == 0 {
			t.Errorf("%s: %d were answered and %d faults caused, want some of both", verb, calls, len(r.worlds[worldServer].faults))
		}
	}
	for _, one := range r.broken {
		if one.Promise != promiseOnTime {
			t.Errorf("%+v", one)
		}
	}
	r.broken = append(r.broken, broken{World: worldServer, Promise: promiseBound, Text: "made up", From: r.from, To: r.to})
	var out bytes.Buffer
	if err := r.publish(c, &out); err != nil {
		t.Fatal(err)
	}
	details, err := os.ReadFile(c.details)
	for _, want := range []string{"-seed 5", "made up"} {
		if !strings.Contains(out.String(), want) || !strings.Contains(string(details), want) {
			t.Errorf("the report and its details (%v) do not both contain %q:\n%s\n%.1000s", err, want, &out, details)
		}
	}
}
