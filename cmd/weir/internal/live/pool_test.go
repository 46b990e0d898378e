package live

import (
	"testing"
	"testing/synctest"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// A viewer sees the calls that a pool pays as those of the pool, with its fullest key, and no refusal of the floor.
func TestTheLivePageShowsWhoPaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWatched(t, 4, 100, "floor=2/h", "pool=4/h")
		chains, err := layer.Otherwise(weir.NewMemory(weir.MemoryOptions{}))
		if err == nil {
			d.engine, err = d.seen.ObserveChains(chains)
		}
		if err != nil {
			t.Fatal(err)
		}
		s := d.watch()
		defer s.end()
		<-s.events
		for n := range 6 {
			q, pool := d.rules["floor"].For("alice", 1), d.rules["pool"].For("all", 1)
			q.Otherwise = &pool
			if got, err := d.engine.Take(t.Context(), q); err != nil || !got.Allowed {
				t.Fatalf("take %d: %+v, %v", n, got, err)
			}
		}
		lines := map[string]RuleLine{}
		for len(lines) < 2 {
			for _, l := range (<-s.events).Rules {
				lines[l.Rule] = l
			}
		}
		if l := lines["floor"]; l.Admitted != 2 || l.Refused != 0 || l.Takes != 2 || l.Fullest != "alice" {
			t.Errorf("the floor is %+v, want 2 admitted and none refused", l)
		}
		if l := lines["pool"]; l.Admitted != 4 || l.Refused != 0 || l.Takes != 4 || l.Fullest != "all" || l.Headroom == nil || *l.Headroom != 0 {
			t.Errorf("the pool is %+v, want 4 admitted, and its key full", l)
		}
		w, err := d.WhatIf("pool", "2/h")
		if err != nil || w.Requests != 4 || w.Before.Admitted != 4 || w.After.Admitted != 2 {
			t.Errorf("what if the pool had 2: %+v, %v", w, err)
		}
	})
}
