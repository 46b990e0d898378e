package redislimit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// Each caller that leaves a long queue costs about the same, in any order. With a search of the queue, each would
// cost 64 times as much in a queue 64 times as long.
func TestLeavingALongQueueCostsNoMoreThanLeavingAShortOne(t *testing.T) {
	each := func(callers int) time.Duration {
		c := &committer{unheard: new(atomic.Int64), most: 128, worth: 1 << 30, flying: 1}
		waiting := make([]*submission, callers)
		for i := range waiting {
			waiting[i] = &submission{}
			waiting[i].decisions = waiting[i].one[:]
			c.push(waiting[i])
		}
		began := time.Now()
		for i := range waiting { // the middle first
			if !c.leave(waiting[(i+callers/2)%callers]) {
				t.Fatal("a caller in the queue was not found in it")
			}
		}
		took := time.Since(began)
		if c.leave(waiting[0]) || c.queue.decisions != 0 || c.next() != nil {
			t.Error("the queue is not empty after all have left")
		}
		return took / time.Duration(callers)
	}
	short, long := each(1600), each(102_400)
	for range 4 {
		short, long = min(short, each(1600)), min(long, each(102_400))
	}
	// A search would go past 25,000 callers or more, in 50 us at least. The memory of many callers is slower than of few.
	if long > 20*short+10*time.Microsecond {
		t.Errorf("leaving a queue of 102,400 took %v for each caller, and one of 1,600 %v", long, short)
	}
}

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
	if err := engine.Each(context.Background(), weir.Calls(weir.OpTake, requests...), results); err != nil {
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
