package main

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"time"
)

// waits knows how long the threads of this process were ready to run and waited for a core, by the kernel's own
// account. A timer beside a call shows only what held up the timer's thread. The call needs other threads, too, and the
// kernel may have held up any of them.
type waits struct {
	read func() time.Duration // the sum since the process began

	mu   sync.Mutex
	past []total // the oldest first
}

type total struct {
	at  time.Time // when it had been read
	sum time.Duration
}

const (
	readEvery = 10 * time.Millisecond
	mostPast  = 1024 // longer than a call goes on after its deadline
)

// watch reads the sum again and again, until over is closed.
func (w *waits) watch(over <-chan struct{}) {
	for {
		w.note()
		select {
		case <-over:
			return
		case <-time.After(readEvery):
		}
	}
}

func (w *waits) note() total {
	sum := w.read()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.past) == mostPast {
		w.past = append(w.past[:0], w.past[mostPast/2:]...)
	}
	w.past = append(w.past, total{time.Now(), sum})
	return w.past[len(w.past)-1]
}

// since returns how long the threads have waited from an instant on, or from a little before.
func (w *waits) since(instant time.Time) time.Duration {
	now := w.note()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.past) - 1; i >= 0; i-- {
		if !w.past[i].at.After(instant) {
			return now.sum - w.past[i].sum
		}
	}
	return now.sum - w.past[0].sum
}

// kernelWaits sums the second number of the threads' schedstat files. It is 0 if the system has none.
func kernelWaits() (sum time.Duration) {
	const threads = "/proc/self/task"
	folder, err := os.Open(threads)
	if err != nil {
		return 0
	}
	defer func() { _ = folder.Close() }()
	names, _ := folder.Readdirnames(-1)
	for _, name := range names {
		text, err := os.ReadFile(threads + "/" + name + "/schedstat")
		if fields := bytes.Fields(text); err == nil && len(fields) > 1 {
			ns, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}
