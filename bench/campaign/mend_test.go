package main

import (
	"context"
	"github.com/weirflow/weir/bench/internal/localredis"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/testprocess"
)

// Servers that do not get well in time are mended, and the keys get the table's grant for that time.
func TestServersThatAreNotWellInTimeAreMended(t *testing.T) {
	testprocess.Require(t, "redis-server", "redis-server")
	h := &localredis.Host{Wait: busyPatience}
	defer h.Close()
	w := startWorld(h, worldServer)
	b := &breaker{world: w, ctx: t.Context(), say: t.Logf, random: rand.New(rand.NewPCG(1, 1))}
	dies := faultKind{name: "made up", cause: func(b *breaker, _ *fault) {
		b.server.Kill()
		h.Fatal("not within the patience")
	}}
	b.cause(dies)
	if len(w.faults) != 2 || w.faults[1].Kind != unwell || !w.faults[1].Loses || w.faults[1].Lanes != allLanes || w.given {
		t.Fatalf("after a server that was not well in time: %+v, given up %v, want a fault that grants a loss", w.faults, w.given)
	}
	if _, err := w.server.Ask("PING"); err != nil {
		t.Errorf("the server is not mended: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b.ctx, h.Wait = ended, 1
	b.cause(dies)
	if last := w.faults[len(w.faults)-1]; !w.given || last.To != never {
		t.Errorf("a server that cannot be mended: %+v, given up %v, want it given up and granted to the end", last, w.given)
	}
	r := &result{book: newBook(nil, nil, map[int]*world{worldServer: w}), begun: time.Now()}
	if got := r.leaked(0); len(got) > 0 {
		t.Errorf("servers that were given up: %+v, want no broken promise", got)
	}
	r.worlds[worldSentinel] = &world{number: worldSentinel}
	r.counts[tally{worldServer, "Take: refused, not counted"}] = 1
	if got := r.checkOutcomes(); len(got) > 0 {
		t.Errorf("errors of servers that were given up: %+v, want no broken promise", got)
	}
	r.counts[tally{worldSentinel, "Take: refused, not counted"}] = 1
	if got := r.checkOutcomes(); len(got) != 1 || got[0].World != worldSentinel {
		t.Errorf("the same of other servers: %+v, want it found", got)
	}
	if got := r.text(&config{}); strings.Count(got, "made up: not within the patience") != 2 || !strings.Contains(got, "| the end |") {
		t.Errorf("the report does not list both times:\n%s", got)
	}
}

// A failover that nothing asked for, while the breaker waits until it may cause the next one, loses states, too.
func TestAFailoverWhileTheNextOneIsWaitedForIsNoted(t *testing.T) {
	s := redistest.StartSentinel(t)
	b := &breaker{world: &world{number: worldSentinel, sentinel: s}, ctx: t.Context(), say: t.Logf}
	b.look()
	if _, err := s.Sentinels[0].Ask("SENTINEL", "FAILOVER", redistest.MasterSet); err != nil {
		t.Fatal(err)
	}
	s.AwaitFailover()
	b.cause(faultKind{name: "none", loses: true, cause: (*breaker).settled})
	if len(b.faults) != 2 || b.faults[0].Kind != "failover, unasked" || b.faults[0].Lanes != allLanes {
		t.Errorf("the faults are %+v, want the failover first", b.faults)
	}
}

// Two failovers between two looks, there and back, lose states although the master is the same again.
func TestFailoversThereAndBackAreNoted(t *testing.T) {
	s := redistest.StartSentinel(t)
	b := &breaker{world: &world{number: worldSentinel, sentinel: s}, ctx: t.Context(), say: t.Logf}
	b.look()
	if b.unasked(0); len(b.faults) > 0 {
		t.Fatalf("the faults are %+v, want none", b.faults)
	}
	for _, of := range [][]string{{"127.0.0.1", strconv.Itoa(s.Replica.Port)}, {"NO", "ONE"}} {
		if reply, err := s.Master.Ask("REPLICAOF", of[0], of[1]); err != nil {
			t.Fatal(reply, err)
		}
	}
	if b.unasked(0); len(b.faults) != 1 || b.faults[0].Kind != "failover, unasked" || !b.faults[0].Loses {
		t.Errorf("the faults are %+v, want a failover", b.faults)
	}
}

// The rate is granted twice only from the promotion of the new master until the old one follows it.
func TestTheTimeWithTwoMastersIsMeasured(t *testing.T) {
	s := redistest.StartSentinel(t)
	b := &breaker{world: &world{number: worldSentinel, sentinel: s}, ctx: t.Context(), say: t.Logf}
	b.look()
	b.cause(faultKind{name: "failover by command", loses: true, cause: (*breaker).sentinelCommand})
	if len(b.faults) != 1 || b.faults[0].Both <= 0 || b.faults[0].Both >= b.faults[0].To-b.faults[0].From {
		t.Errorf("the faults are %+v, want one failover, with two masters for a part of its time", b.faults)
	}
}
