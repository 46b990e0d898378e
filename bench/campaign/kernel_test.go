package main

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What the threads waited before an instant does not count, except since the reading before it.
func TestTheTimeThatThreadsWaitCountsFromAnInstantOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		w := &waits{read: func() time.Duration { return time.Since(begun) / 2 }}
		over := make(chan struct{})
		go w.watch(over)
		time.Sleep(time.Minute + 3*ms) // more readings than it keeps
		if got := w.since(time.Now().Add(-400 * ms)); got < 200*ms || got > 200*ms+readEvery {
			t.Errorf("threads that wait half of the time waited %v in 400 ms, want 200 ms and at most %v", got, readEvery)
		}
		if got := len(w.past); got > mostPast {
			t.Errorf("it keeps %d readings, want at most %d", got, mostPast)
		}
		close(over)
	})
}

func TestTheKernelTellsForHowLongThreadsWaited(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("this system does not count it: ", err)
	}
	before := kernelWaits()
	var spinning sync.WaitGroup
	for range 4 * runtime.NumCPU() { // more threads than cores: some wait
		spinning.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread() // the thread stays, and its time with it
			for end := time.Now().Add(100 * ms); time.Now().Before(end); {
			}
		})
	}
	spinning.Wait()
	if after := kernelWaits(); after <= before {
		t.Errorf("with four busy threads for each core they waited %v, want longer than the %v before", after, before)
	}
}
