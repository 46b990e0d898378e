package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
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

// recovered calls a function and returns what it panics with.
func recovered(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// mishap is a log handler that misbehaves.
type mishap struct {
	slog.Handler
	handle func()
}

func (h mishap) Enabled(context.Context, slog.Level) bool { return true }

func (h mishap) Handle(context.Context, slog.Record) error {
	h.handle()
	return nil
}

func mishaps(handle func()) *slog.Logger { return slog.New(mishap{slog.DiscardHandler, handle}) }

func TestAPanicOfAFunctionLeavesNoSlotTaken(t *testing.T) {
	for name, spoil := range map[string]func(o *httplimit.Options, boom func()) (handler func()){
		"Skip": func(o *httplimit.Options, boom func()) func() {
			o.Skip = func(*http.Request) bool { boom(); return false }
			return nil
		},
		"Key": func(o *httplimit.Options, boom func()) func() {
			o.Rules[0].Key = func(*http.Request) string { boom(); return "all" }
			return nil
		},
		"Cost": func(o *httplimit.Options, boom func()) func() {
			o.Rules[1].Cost = func(*http.Request) int64 { boom(); return 1 }
			return nil
		},
		"Observe": func(o *httplimit.Options, boom func()) func() {
			o.Observe = func(context.Context, layer.Observation) { boom() }
			return nil
		},
		"After": func(o *httplimit.Options, boom func()) func() {
			o.Rules[0].After = func(*http.Request, httplimit.Answer, int64) int64 { boom(); return 1 }
			return nil
		},
		"Plan": func(o *httplimit.Options, boom func()) func() {
			rule := o.Rules[1].Rule
			o.Rules[1].Rule, o.Rules[1].Plan = nil, func(*http.Request) *weir.Rule { boom(); return rule }
			return nil
		},
		"Refuse": func(o *httplimit.Options, boom func()) func() {
			first := true
			o.Rules[0].Cost = func(*http.Request) int64 {
				if first {
					first = false
					return 20 // never fits
				}
				return 1
			}
			o.Refuse = func(http.ResponseWriter, *http.Request, httplimit.Refusal) { boom() }
			return nil
		},
		"Logger": func(o *httplimit.Options, boom func()) func() {
			o.Logger = mishaps(boom)
			o.Rules[1].Key = func(r *http.Request) string { return r.RemoteAddr } // a mistake
			return nil
		},
		"the handler": func(_ *httplimit.Options, boom func()) func() { return boom },
	} {
		for _, wait := range []time.Duration{0, time.Second} {
			engine, work := weir.NewMemory(weir.MemoryOptions{}), mustRule(t, "work=10/h and concurrency 10")
			o := httplimit.Options{Engine: engine, Wait: wait, Rules: []httplimit.Rule{{Rule: work, Key: httplimit.Everyone}, {Rule: mustRule(t, "other=100/h"), Key: httplimit.Everyone}}}
			handler := spoil(&o, once())
			h := wrap(t, o, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				if handler != nil {
					handler()
				}
			}))
			if got := recovered(func() { get(h, alice) }); got != errBoom {
				t.Errorf("%s, wait %v: the server recovers %v, want the panic itself", name, wait, got)
			}
			if d, err := engine.Peek(t.Context(), mustRule(t, "work=concurrency 10").For("all", 0)); err != nil || d.Remaining != 10 {
				t.Errorf("%s, wait %v: %d of 10 slots are free (%v) after the panic, want all", name, wait, d.Remaining, err)
			}
			wantStatus(t, name+": the next request", get(h, alice), 200)
		}
	}
}

func TestAPanicOfAnAfterSettlesTheOtherRules(t *testing.T) {
	engine, boom := weir.NewMemory(weir.MemoryOptions{}), once()
	rule := func(text string, after func() int64) httplimit.Rule {
		return httplimit.Rule{Rule: mustRule(t, text), Key: httplimit.Everyone, After: func(*http.Request, httplimit.Answer, int64) int64 { return after() }}
	}
	h := wrap(t, httplimit.Options{Engine: engine, Rules: []httplimit.Rule{
		rule("a=10/h", func() int64 { return 3 }), rule("b=10/h", func() int64 { boom(); return 3 }), rule("c=10/h", func() int64 { return 0 }),
	}}, ok)
	if got := recovered(func() { get(h, alice) }); got != errBoom {
		t.Errorf("the server recovers %v, want the panic itself", got)
	}
	for text, want := range map[string]int64{"a=10/h": 7, "b=10/h": 9, "c=10/h": 10} {
		if d, err := engine.Peek(t.Context(), mustRule(t, text).For("all", 0)); err != nil || d.Remaining != want {
			t.Errorf("%d of %s remain (%v), want %d", d.Remaining, text, err, want)
		}
	}
}

func TestAFunctionThatBlocksHoldsUpNoOtherRequest(t *testing.T) {
	for name, o := range map[string]func(block func()) httplimit.Options{
		"Observe": func(block func()) httplimit.Options {
			return httplimit.Options{Rules: []httplimit.Rule{{Limit: "client=concurrency 3"}}, Observe: func(context.Context, layer.Observation) { block() }}
		},
		"After": func(block func()) httplimit.Options {
			return httplimit.Options{Rules: []httplimit.Rule{{Limit: "client=10000/h and concurrency 1", After: func(*http.Request, httplimit.Answer, int64) int64 { block(); return 1 }}}}
		},
		"Logger": func(block func()) httplimit.Options { // which is called about rules that are made anew
			return httplimit.Options{Logger: mishaps(block), Rules: []httplimit.Rule{{Key: httplimit.Everyone, Plan: func(*http.Request) *weir.Rule {
				rule, _ := weir.ParseRule("plan=1000000/s")
				return rule
			}}}}
		},
	} {
		goOn, armed, first := make(chan struct{}), false, atomic.Bool{}
		h := wrap(t, o(func() {
			if armed && first.CompareAndSwap(false, true) {
				<-goOn
			}
		}), ok)
		for range 4096 { // as many plans as the middleware remembers
			get(h, bob)
		}
		armed = true
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			get(h, alice)
		}()
		eventually(t, name+" is called", first.Load)
		second := make(chan int, 1)
		go func() { second <- get(h, alice).Code }()
		select {
		case code := <-second:
			if code != 200 {
				t.Errorf("%s blocks: the next request gets %d, want 200", name, code)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s blocks: the next request waits for it", name)
		}
		close(goOn)
		<-ended
	}
}

// The Guard logs an outage in the background, where no caller would recover its panic.
func TestAPanicOfTheLoggerInTheBackgroundEndsNoProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var panics atomic.Int64
		h := wrap(t, httplimit.Options{Engine: broken(weir.NewMemory(weir.MemoryOptions{}), errBoom), Rules: []httplimit.Rule{{Limit: "client=1/h"}},
			Logger: mishaps(func() { panics.Add(1); panic(errBoom) })}, ok)
		for range 10 {
			wantStatus(t, "an engine that is away", get(h, alice), 503)
		}
		synctest.Wait()
		if n := panics.Load(); n != 1 {
			t.Errorf("%d lines were logged, want that of the outage", n)
		}
	})
}

// The handler hijacks its connection, and then forgets it or panics. The collector closes the connection.
func TestTheSlotOfAForgottenConnectionReturns(t *testing.T) {
	for _, keep := range []string{"nothing", "a panic"} {
		server, held := slotServer(t, false, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Errorf("hijack: %v", err)
				return
			}
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			if keep == "a panic" {
				panic(http.ErrAbortHandler)
			}
		})
		upgrade(t, server)
		eventually(t, "release of the slot of a connection of which the handler keeps "+keep, func() bool {
			runtime.GC()
			return held() == 0
		})
	}
}

// The handler forgets the connection, but not the buffers that read from it.
func TestAConnectionInUseKeepsItsSlot(t *testing.T) {
	goOn := make(chan struct{})
	server, held := slotServer(t, false, func(w http.ResponseWriter, _ *http.Request) {
		_, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("hijack: %v", err)
			return
		}
		fmt.Fprint(buffer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = buffer.Flush()
		go func() {
			<-goOn
			_, _ = buffer.WriteString("end\n")
			_ = buffer.Flush()
		}()
	})
	_, reader := upgrade(t, server)
	for range 5 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if got := held(); got != 1 {
		t.Errorf("%d slots are held by a connection in use, want 1", got)
	}
	close(goOn)
	if line, err := reader.ReadString('\n'); line != "end\n" {
		t.Errorf("the last line is %q, %v", line, err)
	}
	eventually(t, "release of the slot", func() bool {
		runtime.GC()
		return held() == 0
	})
}
