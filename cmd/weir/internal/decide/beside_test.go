package decide

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/layer"
)

// newTried returns a desk whose rule has a candidate, and the counts of what was compared.
func newTried(t *testing.T, around func(context.Context, weir.Call, weir.Next) (weir.Answer, error)) (*Desk, map[string]int) {
	t.Helper()
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(`rules:
  - {name: login, match: any, key: client, limit: 1000000/h, candidate: 3/h}
`)})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	counts := map[string]int{}
	return New(Options{Engine: weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), around), Rules: config.Named(), Config: config,
		Compared: func(name string, inForce, beside weir.Decision, err error) {
			mu.Lock()
			defer mu.Unlock()
			counts[fmt.Sprintf("%s %v %v %v", name, inForce.Allowed, beside.Allowed, err)]++
		}}), counts
}

func passes(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	return next(ctx, call)
}

// take takes by name, as a front does.
func take(t *testing.T, d *Desk) {
	t.Helper()
	requests := []weir.Request{d.InForce().Rule([]byte("login")).For("k", 1)}
	made, err := d.Do(t.Context(), weir.Call{Op: weir.OpTake, Requests: requests})
	if err != nil {
		t.Fatal(err)
	}
	d.Took(auth.Anyone("test", auth.All), requests, nil, made)
}

func TestACandidateDecidesOnEachTakeByNameAndEachWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, counts := newTried(t, passes)
		for range 4 {
			take(t, d)
		}
		p := Patient{Client: t.Context(), Patience: time.Second}
		requests := []weir.Request{d.InForce().Rule([]byte("login")).For("k", 1)}
		if made, err := d.Wait(p, requests); err != nil || !made.Allowed {
			t.Fatalf("a wait got %v, %v", made, err)
		}
		if _, token, _, err := d.Reserve(p, requests); err != nil || token == "" {
			t.Fatalf("a reservation got %q, %v", token, err)
		}
		synctest.Wait()
		if want := map[string]int{"login~candidate true true <nil>": 3, "login~candidate true false <nil>": 2}; !maps.Equal(counts, want) {
			t.Errorf("compared %v, want %v: reservations try no candidate", counts, want)
		}
	})
}

// While the engine hangs, callers get their answers, memory is bounded, and what was not tried counts as an error.
func TestShadowsAndCandidatesKeepNoCallerWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, counts := newTried(t, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
			if call.Op == weir.OpEach {
				time.Sleep(time.Minute)
			}
			return next(ctx, call)
		})
		take(t, d)
		synctest.Wait() // the first is being decided
		began := time.Now()
		const more = 10
		for range layer.MostAside + more {
			take(t, d)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("callers waited for %v, want no time", took)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := counts["login~candidate true false "+errTooMany.Error()]; n != more || len(counts) != 2 {
			t.Errorf("compared %v, want %d for which there was no room, and one error of the others", counts, more)
		}
	})
}

func TestACandidateThatTheEngineCannotDecideIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, counts := newTried(t, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
			if call.Op == weir.OpEach {
				return weir.Answer{}, errors.New("gone")
			}
			return next(ctx, call)
		})
		take(t, d)
		synctest.Wait()
		if want := map[string]int{"login~candidate true false gone": 1}; !maps.Equal(counts, want) {
			t.Errorf("compared %v, want %v", counts, want)
		}
	})
}
