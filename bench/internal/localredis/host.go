// Package localredis lets programs start the servers of internal/redistest, which tests start elsewhere.
package localredis

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

// Host owns the servers of a program, as a test owns its own. A server that fails is an error of [Recovered].
type Host struct {
	testing.TB // nil: only the methods below are called

	Wait time.Duration // how long servers may take to get well

	mu      sync.Mutex
	cleanup []func()
}

// hostFailure is the panic of a host, which [Recovered] catches.
type hostFailure struct{ text string }

func (h *Host) Patience() time.Duration { return cmp.Or(h.Wait, 10*time.Second) }

func (h *Host) Helper()             {}
func (h *Host) Failed() bool        { return false }
func (h *Host) Logf(string, ...any) {}
func (h *Host) Fatal(args ...any)   { panic(hostFailure{fmt.Sprint(args...)}) }
func (h *Host) Skip(args ...any)    { panic(hostFailure{fmt.Sprint(args...)}) }

func (h *Host) Fatalf(format string, args ...any) {
	panic(hostFailure{fmt.Sprintf(format, args...)})
}

func (h *Host) Cleanup(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cleanup = append(h.cleanup, f)
}

func (h *Host) TempDir() string {
	dir, err := os.MkdirTemp("", "weir-bench")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Close ends the servers and removes their files.
func (h *Host) Close() {
	for i := len(h.cleanup) - 1; i >= 0; i-- {
		h.cleanup[i]()
	}
}

// Fail reports a failure of a server to [Recovered].
func Fail(err error) { panic(hostFailure{err.Error()}) }

// Recovered calls do and returns the failure of a server as an error.
func Recovered(do func()) (err error) {
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

// Start starts a server that keeps nothing on disk, and returns its address.
func Start(config ...string) (addr string, end func(), err error) {
	h := &Host{}
	if err = Recovered(func() { addr = redistest.Start(h, config...).Addr }); err != nil {
		h.Close()
	}
	return addr, h.Close, err
}

// masters is the number of masters of a cluster.
const masters = 3

// StartCluster starts masters without replicas, and returns their addresses.
func StartCluster() (addrs []string, end func(), err error) {
	h := &Host{}
	err = Recovered(func() {
		c := redistest.StartCluster(h, "cluster-node-timeout 15000")
		for _, replica := range c.Nodes[masters:] {
			replica.Kill()
		}
		addrs = c.Addrs()[:masters]
	})
	if err != nil {
		h.Close()
	}
	return addrs, h.Close, err
}
