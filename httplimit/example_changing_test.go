package httplimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
)

// The types and functions of this file stand in docs/howto/changing-limits.md in the same form.

// live is a rule that can change while requests arrive.
type live struct {
	engine  weir.Engine
	current atomic.Pointer[weir.Rule]
}

// set puts other limits in force, unless they are invalid or the engine cannot hold them. The units used stay used.
func (l *live) set(text string) error {
	rule, err := weir.ParseRule("client=" + text)
	if err != nil {
		return err
	}
	if err := l.engine.Check(rule); err != nil {
		return err
	}
	l.current.Store(rule)
	return nil
}

// limit limits each client by the rule that is in force at the moment.
func (l *live) limit() (func(http.Handler) http.Handler, error) {
	return httplimit.New(httplimit.Options{
		Engine: l.engine,
		Rules:  []httplimit.Rule{{Plan: func(*http.Request) *weir.Rule { return l.current.Load() }}},
	})
}

// follow reads the limits again and again until the context ends. Limits that it cannot use change nothing.
func (l *live) follow(ctx context.Context, every time.Duration, read func() (string, error), failed func(error)) {
	for last := ""; ctx.Err() == nil; {
		text, err := read()
		if err == nil && text != last {
			err = l.set(text)
			last = text
		}
		if err != nil {
			failed(err)
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
		}
	}
}

func ExampleRule_plan() {
	limits := &live{engine: weir.NewMemory(weir.MemoryOptions{})}
	_ = limits.set("2/h")
	limited, err := limits.limit()
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	ask := func() int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		return w.Code
	}
	fmt.Println(ask(), ask(), ask())
	fmt.Println(limits.set("0/h"))
	fmt.Println(limits.set("3/h"), ask(), ask()) // two are used
	// Output:
	// 200 200 429
	// weir: rule "client": token bucket 0/h: rate count 0 is not within 1 and 9007199254740992
	// <nil> 200 429
}

// A followed source changes the limits once its text has changed, and a text that is no limit changes nothing.
func TestAFollowedSourceChangesTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := &live{engine: weir.NewMemory(weir.MemoryOptions{})}
		var text atomic.Value
		var failures atomic.Int64
		text.Store("1/h")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go limits.follow(ctx, time.Second, func() (string, error) { return text.Load().(string), nil }, func(error) { failures.Add(1) })
		for _, step := range []struct {
			text, want string
			failures   int64
		}{
			{"1/h", "client=token bucket 1/h", 0},
			{"5/h", "client=token bucket 5/h", 0},
			{"many", "client=token bucket 5/h", 1},
			{"7/h", "client=token bucket 7/h", 1},
		} {
			text.Store(step.text)
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
			if got := limits.current.Load().String(); got != step.want || failures.Load() != step.failures {
				t.Errorf("the source says %q: in force is %q after %d failures, want %q and %d", step.text, got, failures.Load(), step.want, step.failures)
			}
		}
	})
}
