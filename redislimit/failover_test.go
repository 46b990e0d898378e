package redislimit

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/servers"
)

// After a failover the name of a managed Redis leads to another server, while the connections still lead to the old
// one, which answers READONLY from then on. The owner of a client has to close its connections.
func TestAnAddressWhoseMasterHasMovedIsDialledAgain(t *testing.T) {
	for _, own := range []bool{false, true} {
		was, is := redistest.Start(t), redistest.Start(t)
		link := startProxy(t, was.Addr)
		engine := openFor(t, "redis://"+link.addr, Options{})
		if own {
			client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{link.addr}, DisableCache: true, ConnLifetime: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if engine, err = New(client, Options{}); err != nil {
				t.Fatal(err)
			}
		}
		rule, err := weir.ParseRule("moved=token bucket 1000/h")
		if err != nil {
			t.Fatal(err)
		}
		for range 8 { // on every connection of the client
			if _, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil {
				t.Fatal(err)
			}
		}
		link.server.Store(is.Addr)
		_, port, _ := net.SplitHostPort(is.Addr)
		was.Do("REPLICAOF", "127.0.0.1", port)
		awaitAdmission(t, engine, rule)
	}
}

// awaitAdmission returns when a take is admitted. Until then its errors may be ReadOnly or Lost.
func awaitAdmission(t *testing.T, engine *Engine, rule *weir.Rule) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		d, err := engine.Take(t.Context(), rule.For("k", 1))
		if err == nil && d.Allowed {
			t.Logf("decided %v after the move", time.Since(began))
			return
		}
		failed, ok := errors.AsType[*Error](err)
		if !ok || failed.Reason != ReadOnly && failed.Reason != Lost {
			t.Fatalf("Take after the master has moved: %+v and %v, want it admitted, read only or lost", d, err)
		}
		if time.Since(began) > patience {
			t.Fatalf("no decision within %v of the move: %v", patience, err)
		}
	}
}

// A replica that stays a replica is not dialled again for each call.
func TestAServerThatStaysReadOnlyIsDialledRarely(t *testing.T) {
	master, replica := redistest.Start(t), redistest.Start(t)
	_, port, _ := net.SplitHostPort(master.Addr)
	replica.Do("REPLICAOF", "127.0.0.1", port)
	link := startProxy(t, replica.Addr)
	engine := openFor(t, "redis://"+link.addr, Options{})
	rule, err := weir.ParseRule("r=token bucket 1000/h")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 200 {
		if _, err := engine.Take(t.Context(), rule.For("k", 1)); err == nil {
			t.Fatal("a replica admitted")
		}
	}
	link.mu.Lock()
	dialled := len(link.conns) / 2
	link.mu.Unlock()
	// A client has up to 4 connections.
	if most := 4 * (2 + int(time.Since(began)/servers.RedialEvery)); dialled > most {
		t.Errorf("200 calls of a replica within %v dialled %d times, want at most %d", time.Since(began), dialled, most)
	}
}

// The client drops a hung master when Sentinel names another. The engine stays open all the time, and the calls that
// were sent may have been counted.
func TestAFailoverFromAHungMasterIsNoClosedEngine(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t)
	engine := openFor(t, "redis-sentinel://"+strings.Join(sentinel.Addrs(), ",")+"/"+redistest.MasterSet, Options{})
	rule, err := weir.ParseRule("r=token bucket 1000000/s")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 60 {
		callers.Go(func() {
			for ctx.Err() == nil {
				_, err := engine.Take(context.Background(), rule.For("k", 1))
				if failed, ok := errors.AsType[*Error](err); ok {
					if failed.Reason == Closed {
						t.Errorf("Take during the failover: %v, want no talk of a closed engine", err)
						return
					}
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	goOn(300 * time.Millisecond)
	sentinel.Master.Stop()
	sentinel.AwaitFailover()
	goOn(time.Second)
	stop()
	sentinel.Master.Cont()
	callers.Wait()
}

// A call in flight when the engine was closed may have been counted. A later call was not.
func TestACallThatCloseInterruptsMayHaveBeenCounted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr, Options{})
	rule, err := weir.ParseRule("r=fixed window 1000/300d")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	out := make(chan error, 40)
	for range cap(out) {
		go func() {
			_, err := engine.Take(context.Background(), rule.For("k", 1))
			out <- err
		}()
	}
	for engine.Stats().Calls < 2 {
		time.Sleep(time.Millisecond)
	}
	engine.Close()
	counted := int64(0)
	for range cap(out) {
		err := <-out
		failed, ok := errors.AsType[*Error](err)
		if !ok || failed.Reason != Closed && failed.Reason != Lost {
			t.Errorf("Take that was out when the engine was closed: %v, want it closed or lost", err)
		} else if failed.Counted != weir.CountedNo {
			counted++
		}
	}
	server.Cont()
	d, err := openFor(t, "redis://"+server.Addr, Options{}).Peek(t.Context(), rule.For("k", 0))
	if spent := 999 - d.Remaining; err != nil || spent > counted || counted == 0 {
		t.Errorf("%d units were spent (%v), and %d of 40 callers got an error that they may have been", spent, err, counted)
	}
	_, err = engine.Take(t.Context(), rule.For("k", 1))
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Reason != Closed || failed.Counted != weir.CountedNo {
		t.Errorf("Take after Close: %v, want closed and not counted", err)
	}
}
