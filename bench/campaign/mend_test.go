package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/testprocess"
)

// Servers that do not get well in time are mended, and the keys get the table's grant for that time.
func TestServersThatAreNotWellInTimeAreMended(t *testing.T) {
	testprocess.Require(t, "redis-server", "redis-server")
	h := &host{patience: busyPatience}
	defer h.close()
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
	b.ctx, h.patience = ended, 0
	b.cause(dies)
	if last := w.faults[len(w.faults)-1]; !w.given || last.To != never {
		t.Errorf("a server that cannot be mended: %+v, given up %v, want it given up and granted to the end", last, w.given)
	}
	r := &result{book: newBook(nil, nil, map[int]*world{worldServer: w}), begun: time.Now()}
	if got := r.leaked(0, 0); len(got) > 0 {
		t.Errorf("servers that were given up: %+v, want no broken promise", got)
	}
	if got := r.text(config{}); strings.Count(got, "made up: not within the patience") != 2 || !strings.Contains(got, "| the end |") {
		t.Errorf("the report does not list both times:\n%s", got)
	}
}
