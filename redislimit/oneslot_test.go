package redislimit

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
)

// startOneAddress starts a server that has every slot and refuses calls of several slots, like a managed cluster
// behind one address.
func startOneAddress(t *testing.T) *redistest.Server {
	t.Helper()
	server := redistest.Start(t, "cluster-enabled yes", "cluster-config-file nodes.conf")
	server.Do("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if info, _ := server.Do("CLUSTER", "INFO").(string); strings.Contains(info, "cluster_state:ok") {
			return server
		}
		if time.Since(began) > patience {
			t.Fatalf("the server has not all slots within %v", patience)
		}
	}
}

func TestAClusterBehindOneAddressIsFoundOut(t *testing.T) {
	t.Parallel()
	for _, oneSlot := range []bool{false, true} {
		server := startOneAddress(t)
		engine := openFor(t, "redis://"+server.Addr+"?cluster=0", Options{OneSlot: oneSlot})
		rule, err := weir.ParseRule("r=fixed window 10/300d")
		if err != nil {
			t.Fatal(err)
		}
		var callers sync.WaitGroup
		for c := range 16 {
			callers.Go(func() {
				for i := range 50 {
					if d, err := engine.Take(t.Context(), rule.For(fmt.Sprint("own", c, "-", i), 1)); err != nil || d.Remaining != 9 {
						t.Errorf("OneSlot %t: Take of an own key: %+v and %v, want 9 remaining", oneSlot, d, err)
					}
				}
			})
		}
		callers.Wait()
		requests, results := make([]weir.Request, 40), make([]weir.Result, 40)
		for i := range requests {
			requests[i] = rule.For(fmt.Sprint("each", i%20), 1)
		}
		if err := engine.Each(t.Context(), enginekit.Calls(weir.OpTake, requests...), results); err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if want := int64(9 - i/20); r.Err != nil || r.Decision.Remaining != want {
				t.Errorf("OneSlot %t: Each, request %d: %+v and %v, want %d remaining", oneSlot, i, r.Decision, r.Err, want)
			}
		}
		if refused := crossings(server); refused != !oneSlot {
			t.Errorf("OneSlot %t: the server refused calls of several slots: %t", oneSlot, refused)
		}
		warnings, err := engine.Warnings(t.Context())
		if got := strings.Join(warnings, "\n"); err != nil || strings.Contains(got, "one_slot=1") != !oneSlot || len(warnings) > 1 {
			t.Errorf("OneSlot %t: Warnings = %q, %v, want one about slots unless it is set", oneSlot, warnings, err)
		}
	}
}

// The first decision on several keys detects the cluster, and is all or nothing.
func TestADecisionOfSeveralKeysBehindOneAddressIsAllOrNothing(t *testing.T) {
	t.Parallel()
	engine := openFor(t, "redis://"+startOneAddress(t).Addr+"?cluster=0", Options{})
	rule, err := weir.ParseRule("r=fixed window 10/300d")
	if err != nil {
		t.Fatal(err)
	}
	take := func(alice, bob int64, allowed bool) {
		t.Helper()
		d, err := engine.Take(t.Context(), rule.For("alice", alice), rule.For("bob", bob))
		if err != nil || d.Allowed != allowed {
			t.Errorf("Take of %d and %d: %+v and %v, want allowed %t", alice, bob, d, err, allowed)
		}
	}
	take(4, 9, true)
	take(4, 2, false)
	take(6, 1, true)
}

func TestWarningsFindAClusterBehindOneAddressBeforeAnyCall(t *testing.T) {
	t.Parallel()
	server := startOneAddress(t)
	engine := openFor(t, "redis://"+server.Addr+"?cluster=0", Options{})
	warnings, err := engine.Warnings(t.Context())
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], server.Addr) || !strings.Contains(warnings[0], "one_slot=1") {
		t.Fatalf("Warnings = %q, %v, want one that names %s and one_slot=1", warnings, err, server.Addr)
	}
	rule, err := weir.ParseRule("r=fixed window 10/300d")
	if err != nil {
		t.Fatal(err)
	}
	if d, err := engine.Take(t.Context(), rule.For("alice", 1), rule.For("bob", 1)); err != nil || !d.Allowed {
		t.Errorf("Take: %+v, %v", d, err)
	}
	if crossings(server) {
		t.Error("after the warning the server still refused a call of several slots")
	}
}

// crossings reports whether the server has refused calls of several slots.
func crossings(server *redistest.Server) bool {
	info, _ := server.Do("INFO", "errorstats").(string)
	return strings.Contains(info, "errorstat_CROSSSLOT")
}

// The refused call counts nothing, and the engine then takes lane by lane.
func TestTakeUpToFindsOutAClusterBehindOneAddress(t *testing.T) {
	t.Parallel()
	engine := openFor(t, "redis://"+startOneAddress(t).Addr+"?cluster=0", Options{})
	rule, err := weir.ParseRule("r=fixed window 10/300d")
	if err != nil {
		t.Fatal(err)
	}
	first, later, _ := threeLanes(t, engine, rule)
	for _, want := range []int64{4, 1, 0} {
		times, d, err := weir.TakeUpTo(t.Context(), engine, 4, rule.For(first.key, 1), rule.For(later.key, 2))
		if times != want || d.Allowed != (want > 0) || err != nil {
			t.Errorf("taken %d times with %+v and %v, want %d", times, d, err, want)
		}
	}
	if d, err := engine.Peek(t.Context(), rule.For(first.key, 0)); d.Remaining != 5 || err != nil {
		t.Errorf("of the first: %+v and %v, want 5 of 10 taken", d, err)
	}
}
