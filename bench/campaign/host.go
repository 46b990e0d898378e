package main

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// host owns the servers of a campaign, as a test owns those of internal/redistest. A server that does not start ends
// the campaign: see [host.failure].
type host struct {
	testing.TB // nil: only the methods below are called

	patience time.Duration // how long servers may take to get well

	mu      sync.Mutex
	cleanup []func()
}

// busyPatience is long, because a busy machine delays elections: a sentinel whose timer is late by two seconds takes part
// in none for 30 seconds.
const busyPatience = 90 * time.Second

// hostFailure is the panic of a host, which [recovered] catches.
type hostFailure struct{ text string }

func (h *host) Patience() time.Duration { return h.patience }

func (h *host) Helper()             {}
func (h *host) Failed() bool        { return false }
func (h *host) Logf(string, ...any) {}
func (h *host) Fatal(args ...any)   { panic(hostFailure{fmt.Sprint(args...)}) }
func (h *host) Skip(args ...any)    { panic(hostFailure{fmt.Sprint(args...)}) }

func (h *host) Fatalf(format string, args ...any) {
	panic(hostFailure{fmt.Sprintf(format, args...)})
}

func (h *host) Cleanup(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cleanup = append(h.cleanup, f)
}

func (h *host) TempDir() string {
	dir, err := os.MkdirTemp("", "weir-campaign")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// close ends the servers and removes their files.
func (h *host) close() {
	for i := len(h.cleanup) - 1; i >= 0; i-- {
		h.cleanup[i]()
	}
}

// recovered calls do and returns the failure of a server as an error.
func recovered(do func()) (err error) {
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case hostFailure:
			err = fmt.Errorf("%s", failed.text)
		default:
			panic(failed)
		}
	}()
	do()
	return nil
}
