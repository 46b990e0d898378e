package main

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// A booking that is cancelled after a later take counts as units given back: while it was outstanding, the bucket was not
// full and refilled. So the units that are used can exceed the bound by less than the cost of the booking.
func TestACancelledBookingCountsAsUnitsGivenBack(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	memory := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	rule, err := weir.ParseRule("r=token bucket 10/s burst 5")
	if err != nil {
		t.Fatal(err)
	}
	booked, err := weir.ReserveAhead(t.Context(), memory, time.Second, rule.For("k", 1))
	if err != nil || !booked.Decision.Allowed {
		t.Fatalf("Book: %+v, %v", booked, err)
	}
	take := func(after time.Duration, n int64) {
		now += int64(after)
		if d, err := memory.Take(t.Context(), rule.For("k", n)); err != nil || !d.Allowed {
			t.Errorf("Take of %d: %+v, %v", n, d, err)
		}
	}
	take(10*ms, 1)
	if err := booked.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	take(0, 4)
	take(90*ms, 1) // 6 units in 90 ms, of 5.9
}

func TestACampaignNotesCancelledBookings(t *testing.T) {
	all, err := subjects()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := redislimit.Open("redis://"+redistest.Start(t).Addr, redislimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	var out bytes.Buffer
	p := &process{journal: newJournal(&out), subjects: all, counts: map[tally]int64{}}
	c := &caller{process: p, world: &connection{engine: engine}, random: rand.New(rand.NewPCG(1, 2))}
	i := slices.IndexFunc(all, func(s subject) bool { return s.use == useBook })
	for p.counts[tally{what: "Cancel of a booking: answered"}] == 0 {
		c.book(i, 1)
	}
	if err := p.journal.flush(); err != nil {
		t.Fatal(err)
	}
	returned := 0
	if err := readJournal(&out, func(r record) {
		if r.Kind == recordReturned && r.Units == 1 && r.Answered >= r.Sent+longestBooking.Microseconds() {
			returned++
		}
	}); err != nil || returned != 1 {
		t.Errorf("after a cancelled booking: %d records of its unit (%v), want one until the latest booked instant", returned, err)
	}
}

// A booking that a queue has cancelled was not used, and its units were given back.
func TestABookingThatAQueueCancelsIsNotUsed(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		b := ledger(t, "rate gate 4/2s", useBook)
		at := start + (100 * ms).Microseconds()
		b.add(record{Kind: recordUsed, World: worldCluster, Units: 2, Sent: at, Answered: at, ID: 7})
		b.use(2, 0, 1*ms)
		want := []string{promiseBound}
		if cancelled {
			b.add(record{Kind: recordCancelled, World: worldCluster, Units: 2, Sent: at, Answered: at, ID: 7})
			want = nil
		}
		b.use(2, 50*ms, 200*ms)
		if got := promises(b); !slices.Equal(got, want) {
			t.Errorf("4 units beside a booking of 2, cancelled: %v: %v, want %v", cancelled, got, want)
		}
		b.use(3, 60*ms, 70*ms)
		if got := promises(b); len(got) != 1 {
			t.Errorf("7 units beside a booking of 2, cancelled: %v: %v, want it found", cancelled, got)
		}
	}
}
