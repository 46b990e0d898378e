package decide

import (
	"log/slog"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// A request that has begun keeps its rule, so the lease of a slot has to come from there and not from the rules in force.
func TestARequestKeepsTheLeaseOfItsRuleThroughAReload(t *testing.T) {
	old, err := weir.ParseRule("jobs=concurrency 2 lease 5m")
	if err != nil {
		t.Fatal(err)
	}
	now, err := weir.ParseRule("jobs=9/s")
	if err != nil {
		t.Fatal(err)
	}
	d := New(Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Rules: []*weir.Rule{old}, Log: slog.New(slog.DiscardHandler)})
	asked := []weir.Request{d.InForce().Rule([]byte("jobs")).For("a", 1)}
	d.Use([]*weir.Rule{now}, nil)
	if _, err := d.Wait(Patient{Client: t.Context()}, asked); err != ErrSlots {
		t.Errorf("a wait for slots got %v, want %v", err, ErrSlots)
	}
	made, token, life, err := d.Reserve(Patient{Client: t.Context()}, asked)
	if err != nil || !made.Allowed || token == "" || life != 5*time.Minute {
		t.Errorf("a reservation got %v, a token of %d bytes and a life of %v, %v; want an admission for the lease of 5m", made, len(token), life, err)
	}
}
