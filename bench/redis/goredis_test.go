package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/limittest"
	"github.com/weirflow/weir/redislimit"
)

// goRedis lets an engine use a client of go-redis.
type goRedis struct{ redis.UniversalClient }

// once is a command that go-redis must not repeat after a lost answer, because its cost may have been counted.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

func (client goRedis) Send(ctx context.Context, command ...string) (string, error) {
	words := make([]any, len(command))
	for i, word := range command {
		words[i] = word
	}
	cmd := redis.NewCmd(ctx, words...)
	if err := client.Process(ctx, once{cmd}); err != nil {
		return "", err
	}
	return cmd.Text()
}

func TestGoRedisPassesTheSuiteOnOneServer(t *testing.T) {
	passes(t, redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr}), redislimit.Options{})
}

func TestGoRedisPassesTheSuiteOnACluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	passes(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()}), redislimit.Options{OneSlot: true})
}

func passes(t *testing.T, client redis.UniversalClient, options redislimit.Options) {
	t.Cleanup(func() { _ = client.Close() })
	engines := 0
	limittest.RunTicks(t, time.Microsecond, 1<<52, func(clock func() int64) weir.Engine {
		engines++
		options.Prefix, options.Clock, options.Linger = fmt.Sprint("test", engines), clock, time.Hour
		engine, err := redislimit.NewWith(goRedis{client}, options)
		if err != nil {
			t.Fatal(err)
		}
		return engine
	})
}

// By default, go-redis repeats a command whose answer was lost.
func TestGoRedisCountsATakeOnceWhoseAnswerIsLost(t *testing.T) {
	server := redistest.Start(t)
	var cut atomic.Bool
	client := redis.NewClient(&redis.Options{Addr: cutting(t, server.Addr, &cut), PoolSize: 1})
	defer func() { _ = client.Close() }()
	engine, err := redislimit.NewWith(goRedis{client}, redislimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rule, err := weir.ParseRule("r=fixed window 100/300d")
	if err != nil {
		t.Fatal(err)
	}
	take := func() (weir.Decision, error) { return engine.Take(t.Context(), rule.For("k", 1)) }
	if d, err := take(); err != nil || d.Remaining != 99 {
		t.Fatalf("Take: %+v, %v", d, err)
	}
	cut.Store(true)
	_, err = take()
	if failed, ok := errors.AsType[*redislimit.Error](err); !ok || failed.Reason != redislimit.Lost || failed.Counted == weir.CountedNo {
		t.Errorf("Take whose answer was cut: %v, want it lost, and perhaps counted", err)
	}
	if d, err := take(); err != nil || d.Remaining != 97 {
		t.Errorf("the third Take: %+v and %v, want 97 remaining: each was counted once", d, err)
	}
}

// cutting returns an address that leads to the server. When cut is set, it ends the connection instead of passing on
// the next answer.
func cutting(t *testing.T, server string, cut *atomic.Bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(behind, client)
				_ = behind.Close()
			}()
			go answers(client, behind, cut)
		}
	}()
	return listener.Addr().String()
}

func answers(client, behind net.Conn, cut *atomic.Bool) {
	defer func() { _ = client.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := behind.Read(buffer)
		if err != nil || cut.CompareAndSwap(true, false) {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
