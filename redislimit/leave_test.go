package redislimit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
)

// The engine waits once for a server that hangs, for any number of calls.
func TestEachOfAHungServerWaitsOnce(t *testing.T) {
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr+"?timeout=500ms", Options{})
	rule, err := weir.ParseRule("r=token bucket 1000/h")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil {
		t.Fatal(err)
	}
	requests, results := make([]weir.Request, 20*128), make([]weir.Result, 20*128)
	for i := range requests {
		requests[i] = rule.For(fmt.Sprint(i), 1)
	}
	before := engine.Stats().Calls
	server.Stop()
	defer server.Cont()
	if err := engine.Each(context.Background(), enginekit.Calls(weir.OpTake, requests...), results); err != nil {
		t.Fatal(err)
	}
	if calls := engine.Stats().Calls - before; calls > 2 {
		t.Errorf("Each made %d calls of a server that hangs, want one", calls)
	}
	for i, r := range results {
		failed, ok := errors.AsType[*Error](r.Err)
		if !ok || failed.Reason != Lost || i >= 128 && failed.Counted != weir.CountedNo {
			t.Fatalf("request %d: %+v and %v, want it lost, and uncounted unless it was in the first call", i, r.Decision, r.Err)
		}
	}
}

// FIPS 140 mode refuses SHA-1, which Redis names scripts by.
func TestTheEngineWorksInFIPSMode(t *testing.T) {
	if os.Getenv("WEIR_FIPS_CHILD") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTheEngineWorksInFIPSMode$", "-test.count=1")
		cmd.Env = append(os.Environ(), "GODEBUG=fips140=only", "WEIR_FIPS_CHILD=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("with GODEBUG=fips140=only: %v\n%.2000s", err, out)
		}
		return
	}
	if err := reaches(t, "redis://"+redistest.Start(t).Addr); err != nil {
		t.Error(err)
	}
}
