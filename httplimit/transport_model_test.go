package httplimit_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/internal/randtest"
)

// call is a request to a model: what its client expects that it uses, and what it uses.
type call struct{ estimate, used httplimit.Tokens }

type callKey struct{}

// estimated is a function for TransportOptions.Tokens.
func estimated(r *http.Request) httplimit.Tokens { return r.Context().Value(callKey{}).(call).estimate }

// request returns a request to a model.
func (c call) request(t testing.TB) *http.Request {
	return toHost(t, context.WithValue(t.Context(), callKey{}, c), "model.example")
}

// meter is one budget of a model's server in windows of a minute.
type meter struct {
	of                      func(httplimit.Tokens) int64
	limit, left             int64
	limits, remaining, when string // names of fields
}

// model is the server of a language model: it holds the estimate of a request when it arrives, and counts what was used at
// the end of the answer.
type model struct {
	meters  []*meter
	instant bool // whether it announces instants
	oneWay  func() time.Duration

	mu      sync.Mutex
	end     time.Time // of the window
	calls   int
	refused int
	most    int // calls at a time
	running int
}

func sumOf(t httplimit.Tokens) int64    { return t.Input + t.Output }
func inputOf(t httplimit.Tokens) int64  { return t.Input }
func outputOf(t httplimit.Tokens) int64 { return t.Output }

func openAI(limit int64) *model {
	return &model{meters: []*meter{{sumOf, limit, 0, "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"}}}
}

func anthropic(all, input, output int64) *model {
	m := &model{instant: true}
	for _, each := range []struct {
		name  string
		of    func(httplimit.Tokens) int64
		limit int64
	}{{"Tokens", sumOf, all}, {"Input-Tokens", inputOf, input}, {"Output-Tokens", outputOf, output}} {
		field := "Anthropic-Ratelimit-" + each.name
		m.meters = append(m.meters, &meter{each.of, each.limit, 0, field + "-Limit", field + "-Remaining", field + "-Reset"})
	}
	return m
}

func (m *model) travel() {
	if m.oneWay != nil {
		time.Sleep(m.oneWay())
	}
}

func (m *model) RoundTrip(r *http.Request) (*http.Response, error) {
	c := r.Context().Value(callKey{}).(call)
	m.travel()
	resp, end := m.arrive(r, c)
	m.travel()
	if resp.StatusCode == 200 {
		resp.Body, resp.ContentLength = &modelAnswer{Reader: strings.NewReader(stated(c.used)), model: m, call: c, end: end}, -1
	}
	return resp, nil
}

// stated is a stream that ends with its usage.
func stated(used httplimit.Tokens) string {
	return fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\":{\"}}],\"usage\":null}\n\ndata: {\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", used.Input, used.Output)
}

// arrive decides, and returns the end of the window.
func (m *model) arrive(r *http.Request, c call) (*http.Response, time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, status := time.Now(), 200
	if !now.Before(m.end) {
		m.end = now.Truncate(time.Minute).Add(time.Minute)
		for _, each := range m.meters {
			each.left = each.limit
		}
	}
	m.calls++
	for _, each := range m.meters {
		if each.of(c.estimate) > each.left {
			status = 429
		}
	}
	resp := replies(r, status, "")
	for _, each := range m.meters {
		if status == 200 {
			each.left -= each.of(c.estimate)
		}
		resp.Header.Set(each.limits, fmt.Sprint(each.limit))
		resp.Header.Set(each.remaining, fmt.Sprint(max(each.left, 0)))
		resp.Header.Set(each.when, m.end.Sub(now).String())
		if m.instant {
			resp.Header.Set(each.when, m.end.Format(time.RFC3339Nano))
		}
	}
	if status == 429 {
		m.refused++
		return resp, m.end
	}
	m.running++
	m.most = max(m.most, m.running)
	return resp, m.end
}

// modelAnswer counts what was used when it is closed.
type modelAnswer struct {
	io.Reader
	model *model
	call  call
	end   time.Time
}

func (a *modelAnswer) Close() error {
	m := a.model
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running--
	for _, each := range m.meters {
		if a.end.Equal(m.end) {
			each.left += each.of(a.call.estimate) - each.of(a.call.used)
		}
	}
	return nil
}

// someCall uses at most what is expected.
func someCall(random *rand.Rand) call {
	upTo := func(most int64) (estimate, used int64) {
		estimate = 1 + random.Int64N(most)
		return estimate, random.Int64N(estimate + 1)
	}
	var c call
	c.estimate.Input, c.used.Input = upTo(300)
	c.estimate.Output, c.used.Output = upTo(500)
	return c
}

func TestAModelRefusesNoRequestWhoseEstimateIsRight(t *testing.T) {
	for seed := range randtest.Seeds(t, 60, 20) {
		synctest.Test(t, func(t *testing.T) {
			random := randtest.New(seed)
			upTo := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
			m := openAI(1000 + random.Int64N(5000))
			if seed%2 == 0 {
				m = anthropic(2000+random.Int64N(5000), 600+random.Int64N(2000), 600+random.Int64N(2000))
			}
			time.Sleep(upTo(time.Minute))
			m.oneWay = func() time.Duration { return upTo(300 * time.Millisecond) }
			transport := newTransport(t, httplimit.TransportOptions{Base: m, Tokens: estimated})
			workers := []int{1, 9, 50}[random.IntN(3)]
			var all sync.WaitGroup
			for range workers {
				all.Go(func() {
					for range 100 / workers {
						time.Sleep(upTo(2 * time.Second))
						stream(t, transport, someCall(random), upTo(5*time.Second))
					}
				})
			}
			all.Wait()
			if m.refused > 0 || workers > 1 && m.most < 2 {
				t.Errorf("%d workers: the server refused %d of %d requests, and answered %d at a time; want none and several", workers, m.refused, m.calls, m.most)
			}
		})
	}
}
