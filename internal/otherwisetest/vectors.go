package otherwisetest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

//go:embed vectors.jsonl
var vectors []byte

// scenario is a line of vectors.jsonl: calls in order on fresh keys, and the model's answers. Times are in nanoseconds.
type scenario struct {
	ID    string   `json:"id"`
	Rules []string `json:"rules"` // as weir.ParseRule reads them
	T0    int64    `json:"t0"`
	Ops   []op     `json:"ops"`
}

type op struct {
	T        int64    `json:"t"`              // after T0
	Verb     string   `json:"verb"`           // take, peek or upto
	Most     int64    `json:"most,omitempty"` // of upto
	Requests [][]link `json:"requests"`       // each with what stands in its place, in order
	Want     answer   `json:"want"`
}

type link struct {
	Rule string `json:"rule"`
	Key  string `json:"key"`
	Cost int64  `json:"cost"`
}

type answer struct {
	Allowed    bool   `json:"allowed"`
	Times      int64  `json:"times,omitempty"` // how many times an upto took all
	Paid       []link `json:"paid,omitempty"`  // what was taken, if it is not the first link of each request
	Rule       string `json:"rule"`            // the one that the numbers describe, and its key
	Key        string `json:"key"`
	Limit      int64  `json:"limit"`
	Remaining  int64  `json:"remaining"`
	RetryAfter int64  `json:"retry_after"` // -1 is never
	ResetAfter int64  `json:"reset_after"`
}

var verbs = map[string]weir.Op{"take": weir.OpTake, "peek": weir.OpPeek, "upto": weir.OpTakeUpTo}

// playVectors compares the answers of layer.Otherwise over an engine with those of vectors.jsonl.
func playVectors(t *testing.T, newEngine func(clock func() int64) weir.Engine) {
	t.Helper()
	for _, s := range scenarios(t) {
		var now atomic.Int64
		now.Store(s.T0)
		e, err := layer.Otherwise(newEngine(now.Load))
		if err != nil {
			t.Fatal(err)
		}
		rules := map[string]*weir.Rule{}
		for _, text := range s.Rules {
			rule, err := weir.ParseRule(text)
			if err != nil {
				t.Fatal(err)
			}
			rules[rule.Name()] = rule
		}
		for i, o := range s.Ops {
			now.Store(s.T0 + o.T)
			call := weir.Call{Op: verbs[o.Verb], Most: o.Most}
			for _, links := range o.Requests {
				call.Requests = append(call.Requests, *chained(rules, links))
			}
			a, err := e.Do(context.Background(), call)
			if got, want := fmt.Sprintf("%+v", answerOf(a)), fmt.Sprintf("%+v", o.Want); err != nil || got != want {
				t.Errorf("%s op %d: got %s (%v), want %s", s.ID, i, got, err, want)
			}
		}
	}
}

func scenarios(t testing.TB) (all []scenario) {
	decoder := json.NewDecoder(bytes.NewReader(vectors))
	for decoder.DisallowUnknownFields(); decoder.More(); {
		var s scenario
		if err := decoder.Decode(&s); err != nil || len(s.Ops) == 0 {
			t.Fatalf("vectors.jsonl: %d operations of %q (%v)", len(s.Ops), s.ID, err)
		}
		all = append(all, s)
	}
	return all
}

// chained returns the first of links, with the others in its place.
func chained(rules map[string]*weir.Rule, links []link) *weir.Request {
	if len(links) == 0 {
		return nil
	}
	q := rules[links[0].Rule].For(links[0].Key, links[0].Cost)
	q.Otherwise = chained(rules, links[1:])
	return &q
}

func answerOf(a weir.Answer) answer {
	d := a.Decision
	got := answer{d.Allowed, a.Times, nil, d.Rule, d.Key, d.Limit, d.Remaining, int64(d.RetryAfter), int64(d.ResetAfter)}
	for _, q := range a.Paid {
		got.Paid = append(got.Paid, link{q.Rule.Name(), q.Key, q.Cost})
	}
	for _, at := range []*int64{&got.RetryAfter, &got.ResetAfter} {
		if *at == int64(weir.Never) {
			*at = -1
		}
	}
	return got
}
