package grpclimit_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/grpclimit"
	"github.com/weirflow/weir/layer"
)

var errBoom = errors.New("boom")

// once panics at its first call.
func once() func() {
	var called atomic.Bool
	return func() {
		if called.CompareAndSwap(false, true) {
			panic(errBoom)
		}
	}
}

// wantPanic checks that a function panics with errBoom.
func wantPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if got := recover(); got != errBoom {
			t.Errorf("%s: the caller recovers %v, want the panic itself", what, got)
		}
	}()
	f()
}

// wantFree checks that the only slot is free.
func wantFree(t *testing.T, what string, engine weir.Engine) {
	t.Helper()
	if d, err := engine.Peek(t.Context(), mustRule(t, "work=concurrency 1").For("all", 0)); err != nil || d.Remaining != 1 {
		t.Errorf("%s: %d slots are free (%v), want 1", what, d.Remaining, err)
	}
}

func TestAPanicInAServerLeavesNoSlotTaken(t *testing.T) {
	for name, spoil := range map[string]func(o *grpclimit.Options, boom func()){
		"Skip": func(o *grpclimit.Options, boom func()) {
			o.Skip = func(grpclimit.RPC) bool { boom(); return false }
		},
		"Observe": func(o *grpclimit.Options, boom func()) {
			o.Observe = func(context.Context, layer.Observation) { boom() }
		},
		"Key": func(o *grpclimit.Options, boom func()) {
			o.Rules[1].Key = func(grpclimit.RPC) string { boom(); return "all" }
		},
		"Cost": func(o *grpclimit.Options, boom func()) {
			o.Rules[1].Cost = func(grpclimit.RPC) int64 { boom(); return 1 }
		},
		"Plan": func(o *grpclimit.Options, boom func()) {
			rule := o.Rules[1].Rule
			o.Rules[1].Rule, o.Rules[1].Plan = nil, func(grpclimit.RPC) *weir.Rule { boom(); return rule }
		},
	} {
		for way, arrive := range arrivals {
			engine := weir.NewMemory(weir.MemoryOptions{})
			o := grpclimit.Options{Engine: engine, EachMessage: way == "a message", Rules: []grpclimit.Rule{
				{Rule: mustRule(t, "work=10/h and concurrency 1"), Key: grpclimit.Everyone}, {Rule: mustRule(t, "other=10/h"), Key: grpclimit.Everyone},
			}}
			spoil(&o, once())
			limited := newServer(t, o)
			wantPanic(t, name+", "+way, func() { _ = arrive(limited, t.Context(), func() {}) })
			wantFree(t, name+", "+way, engine)
			wantCode(t, name+", the next "+way, arrive(limited, t.Context(), func() {}), codes.OK)
		}
	}
}

// mishap is a log handler that panics.
type mishap struct{ slog.Handler }

func (mishap) Enabled(context.Context, slog.Level) bool  { return true }
func (mishap) Handle(context.Context, slog.Record) error { panic(errBoom) }

// The Guard logs an outage in the background, where no caller would recover its panic.
func TestAPanicOfTheLoggerInTheBackgroundEndsNoProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := newServer(t, grpclimit.Options{Engine: broken(weir.NewMemory(weir.MemoryOptions{})), Logger: slog.New(mishap{slog.DiscardHandler}), Rules: []grpclimit.Rule{{Limit: "client=1/h"}}})
		for range 10 {
			wantCode(t, "an engine that is away", callDirectly(t.Context(), limited, func() {}), codes.Unavailable)
		}
		synctest.Wait()
	})
}

// outgoing is a stream of a client that calls a function when it receives.
type outgoing struct {
	grpc.ClientStream
	receive func()
}

func (s outgoing) RecvMsg(any) error {
	s.receive()
	return nil
}

func TestAPanicInAClientLeavesNoSlotTaken(t *testing.T) {
	for name, spoil := range map[string]func(o *grpclimit.ClientOptions, boom func()) (receive func()){
		"the call": func(*grpclimit.ClientOptions, func()) func() { return nil },
		"receive":  func(_ *grpclimit.ClientOptions, boom func()) func() { return boom },
		"Scope": func(o *grpclimit.ClientOptions, boom func()) func() {
			o.Scope = func(grpclimit.RPC) string { boom(); return "all" }
			return func() {}
		},
		"Key": func(o *grpclimit.ClientOptions, boom func()) func() {
			o.Rules[0].Key = func(grpclimit.RPC) string { boom(); return "all" }
			return func() {}
		},
	} {
		for _, streams := range []bool{false, true} {
			engine, boom := weir.NewMemory(weir.MemoryOptions{}), once()
			o := grpclimit.ClientOptions{Engine: engine, Rules: []grpclimit.Rule{{Rule: mustRule(t, "work=concurrency 1")}}}
			receive := spoil(&o, boom)
			c := newClient(t, o)
			ask := func() error {
				if !streams {
					return call(t.Context(), c, "m", func() error { boom(); return nil })
				}
				stream, err := c.Stream(t.Context(), &grpc.StreamDesc{}, nil, "m", func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
					if receive == nil {
						boom()
					}
					return outgoing{receive: receive}, nil
				})
				if err == nil {
					err = stream.RecvMsg(nil)
				}
				return err
			}
			wantPanic(t, name, func() { _ = ask() })
			wantFree(t, name, engine)
		}
	}
}
