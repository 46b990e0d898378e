package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/layer"
)

// plainEngine is an engine without the optional abilities of a Memory.
type plainEngine struct{ weir.Engine }

func engines() map[string]func() weir.Engine {
	return map[string]func() weir.Engine{
		"memory": func() weir.Engine { return weir.NewMemory(weir.MemoryOptions{}) },
		"plain":  func() weir.Engine { return plainEngine{weir.NewMemory(weir.MemoryOptions{})} },
	}
}

// asking sends n requests at once, and returns when each came to the server.
func asking(t *testing.T, transport http.RoundTripper, n int, host func(i int) string) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			resp, err := transport.RoundTrip(toHost(t, t.Context(), host(i)))
			if err != nil {
				t.Errorf("request %d: %v", i, err)
				return
			}
			_ = resp.Body.Close()
		})
	}
	all.Wait()
}

func oneHost(int) string { return "api.example" }

func TestOwnRulesAreWaitedForOnce(t *testing.T) {
	for name, engine := range engines() {
		for text, want := range map[string]time.Duration{
			"token bucket 10/s burst 10":            2 * time.Second,
			"rate gate 10/s":                        2 * time.Second,
			"sliding log 10/s":                      2 * time.Second,
			"fixed window 10/1s":                    2 * time.Second,
			"cycle 10/s":                            2 * time.Second,
			"rate gate 10/s and fixed window 25/1m": time.Minute,
		} {
			t.Run(name+"/"+text, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := scripted()
					transport := newTransport(t, httplimit.TransportOptions{Base: s, Engine: engine(), Rules: []httplimit.Rule{{Limit: "client=" + text}}})
					asking(t, transport, 30, oneHost)
					if len(s.came) != 30 || s.came[29] != want {
						t.Errorf("requests came at %v, want 30 and the last at %v", s.came, want)
					}
				})
			})
		}
	}
}

// Several transports, as of several machines, share the terms of a vendor who announces nothing.
func TestMachinesThatShareAnEngineStayInsideAVendorsTerms(t *testing.T) {
	for name, engine := range engines() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vendor, err := weir.New(weir.SlidingLog{Rate: weir.Per(20, 10*time.Second)})
				if err != nil {
					t.Fatal(err)
				}
				var mu sync.Mutex
				inFlight, most, refused := 0, 0, 0
				base := tripper(func(r *http.Request) (*http.Response, error) {
					mu.Lock()
					inFlight++
					most = max(most, inFlight)
					if !vendor.Allow() {
						refused++
					}
					mu.Unlock()
					time.Sleep(300 * time.Millisecond)
					mu.Lock()
					inFlight--
					mu.Unlock()
					return replies(r, 200, ""), nil
				})
				shared := engine()
				var all sync.WaitGroup
				start := time.Now()
				for range 3 {
					transport := newTransport(t, httplimit.TransportOptions{Base: base, Engine: shared,
						Rules: []httplimit.Rule{{Limit: "vendor=rate gate 20/10s and concurrency 8 lease 1m"}}})
					all.Go(func() { asking(t, transport, 20, oneHost) })
				}
				all.Wait()
				if took := time.Since(start); refused > 0 || most > 8 || took < 20*time.Second || took > 24*time.Second {
					t.Errorf("60 requests of three machines in %v: %d refused, up to %d at once; want none, 8 at most, and little more than 20 s", took, refused, most)
				}
			})
		})
	}
}

// A chain of two gates could release one host three times at one instant.
func TestTheDelayOfAHostHoldsWhileTheTotalIsWhatHoldsEveryoneBack(t *testing.T) {
	for name, engine := range engines() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				came := map[string][]time.Time{}
				total := 0
				base := tripper(func(r *http.Request) (*http.Response, error) {
					mu.Lock()
					defer mu.Unlock()
					came[r.URL.Host] = append(came[r.URL.Host], time.Now())
					total++
					return replies(r, 200, ""), nil
				})
				delays := map[string]time.Duration{"a.example": 200 * time.Millisecond, "b.example": 2 * time.Second, "c.example": 0}
				transport := newTransport(t, httplimit.TransportOptions{Base: base, Engine: engine(),
					Rules: []httplimit.Rule{{Limit: "total=rate gate 3/s", Key: httplimit.Everyone}},
					Delay: func(r *http.Request) time.Duration { return delays[r.URL.Host] }})
				start := time.Now()
				asking(t, transport, 60, func(i int) string { return []string{"a.example", "b.example", "c.example"}[i%3] })
				for host, times := range came {
					for i := 1; i < len(times); i++ {
						if gap := times[i].Sub(times[i-1]); gap < delays[host] {
							t.Errorf("two requests to %s are %v apart, want %v", host, gap, delays[host])
						}
					}
				}
				if took := time.Since(start); total != 60 || took < 19*time.Second || took > 45*time.Second {
					t.Errorf("%d requests in %v, want 60 in 20 s to 45 s", total, took)
				}
			})
		})
	}
}

func TestACallerCanLeaveEachWait(t *testing.T) {
	hour := func(*http.Request) time.Duration { return 5 * time.Minute }
	hangs := tripper(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
	for reason, o := range map[httplimit.Reason]httplimit.TransportOptions{
		httplimit.ReasonPause: {Base: scripted(says("429", "Retry-After: 300"))},
		httplimit.ReasonQuota: {Base: scripted(says("200", `RateLimit: "client=a";r=0;t=300`))},
		httplimit.ReasonSlow:  {Base: scripted(says("429"), says("200"))},
		httplimit.ReasonDelay: {Base: scripted(), Delay: hour},
		httplimit.ReasonRules: {Base: scripted(), Rules: []httplimit.Rule{{Limit: "client=fixed window 1/1h"}}},
		httplimit.ReasonFirst: {Base: hangs},
		httplimit.ReasonRetry: {Base: always(503)},
	} {
		t.Run(string(reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaves(t, reason, o)
			})
		})
	}
}

// leaves cancels a request that waits for a reason, and one that waits behind it.
func leaves(t *testing.T, reason httplimit.Reason, o httplimit.TransportOptions) {
	var mu sync.Mutex
	seen := map[httplimit.Reason]bool{}
	o.Observe = func(_ *http.Request, e httplimit.TransportEvent) {
		mu.Lock()
		defer mu.Unlock()
		seen[e.Reason] = seen[e.Reason] || e.Kind == httplimit.EventDelayed
	}
	o.Retries = -1
	if reason == httplimit.ReasonRetry {
		o.Retries = 1
	}
	transport := newTransport(t, o)
	background, end := context.WithCancel(t.Context())
	ask := func(ctx context.Context) error {
		resp, err := transport.RoundTrip(toHost(t, ctx, "api.example"))
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	go func() { _ = ask(background) }()
	synctest.Wait()
	if reason == httplimit.ReasonSlow {
		time.Sleep(1300 * time.Millisecond)
		_ = ask(background)
	}
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- ask(ctx) }()
		synctest.Wait()
	}
	if waits := transport.Waits(5); len(waits) != 1 || waits[0].Key != "api.example" || waits[0].Reason != reason || transport.Stats().Waiting != waits[0].Waiting {
		t.Errorf("Waits are %+v and Stats %+v, want requests that wait for %q", waits, transport.Stats(), reason)
	}
	cancel()
	for range 2 {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("a request that leaves gets %v, want context.Canceled", err)
		}
	}
	end()
	synctest.Wait()
	if !seen[reason] || transport.Stats().Waiting != 0 || len(transport.Waits(5)) != 0 {
		t.Errorf("observed %v, Stats %+v, want %q and nothing waiting", seen, transport.Stats(), reason)
	}
}

func TestTheLineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := newTransport(t, httplimit.TransportOptions{Base: scripted(says("200", `RateLimit: "client=a";r=0;t=60`)), MaxWaiting: 3})
		ctx, cancel := context.WithCancel(t.Context())
		full := 0
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				_, err := transport.RoundTrip(toHost(t, ctx, "api.example"))
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, weir.ErrQueueFull) {
					full++
				}
			})
			synctest.Wait()
		}
		cancel()
		all.Wait()
		if full != 6 { // one was answered, three wait
			t.Errorf("%d of 9 requests found the line full, want 6", full)
		}
	})
}

func TestRequestsOfOneKeyGoInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		base := tripper(func(r *http.Request) (*http.Response, error) {
			order = append(order, r.Header.Get("N"))
			return replies(r, 200, "", `RateLimit: "a";r=0;t=1`), nil
		})
		transport := newTransport(t, httplimit.TransportOptions{Base: base})
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				r := toHost(t, t.Context(), "api.example")
				r.Header.Set("N", fmt.Sprint(i))
				if resp, err := transport.RoundTrip(r); err == nil {
					_ = resp.Body.Close()
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if got, want := strings.Join(order, " "), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"; got != want {
			t.Errorf("the order is %s, want %s", got, want)
		}
	})
}

// A request that waits for its own key does not hold up those that charge another one.
func TestARuleOfAnotherKeyDoesNotHoldUpTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := newTransport(t, httplimit.TransportOptions{Base: scripted(), Rules: []httplimit.Rule{{Limit: "user=fixed window 1/1h", Key: httplimit.Header("User")}}})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		for i, user := range []string{"alice", "alice", "bob", ""} {
			r := toHost(t, ctx, "api.example")
			r.Header.Set("User", user)
			if i == 1 {
				go func() { _, _ = transport.RoundTrip(r) }()
				synctest.Wait()
				continue
			}
			start := time.Now()
			if _, err := transport.RoundTrip(r); err != nil || time.Since(start) != 0 {
				t.Errorf("%q gets %v after %v, want an answer at once", user, err, time.Since(start))
			}
		}
	})
}

func TestClientsShareWhatTheyLearn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := scripted(says("429", "Retry-After: 60")), scripted()
		transport := newTransport(t, httplimit.TransportOptions{Base: first, Retries: -1})
		other := &http.Client{Transport: transport.Over(second)}
		if status, err := ask(transport, "http://api.example"); status != 429 || err != nil {
			t.Fatal(status, err)
		}
		resp, err := other.Get("http://api.example")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if len(second.came) != 1 || second.came[0] < time.Minute || second.came[0] > time.Minute+time.Second {
			t.Errorf("requests of the other client at %v, want one after a minute", second.came)
		}
	})
}

// Keys of which there is nothing to know are forgotten.
func TestTheRememberedKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := newTransport(t, httplimit.TransportOptions{Base: always(200), MaxKeys: 100})
		for i := range 5000 {
			if _, err := ask(transport, fmt.Sprintf("http://host-%d.example/", i)); err != nil {
				t.Fatal(err)
			}
		}
		if n := transport.Stats().Keys; n > 100 {
			t.Errorf("%d keys, want 100 at most", n)
		}
		paused := newTransport(t, httplimit.TransportOptions{Base: always(200, `RateLimit: "client=a";r=1;t=60`), MaxKeys: 100})
		var err error
		for i := 0; err == nil && i < 5000; i++ {
			_, err = ask(paused, fmt.Sprintf("http://host-%d.example/", i))
		}
		if n := paused.Stats().Keys; n != 100 || !errors.Is(err, weir.ErrNoRoom) {
			t.Errorf("%d keys and %v, want 100 and weir.ErrNoRoom", n, err)
		}
		time.Sleep(time.Minute)
		if _, err := ask(paused, "http://late.example/"); err != nil {
			t.Errorf("after a minute: %v, want room", err)
		}
	})
}

func TestAnAnnouncedLimitOfRequestsInFlightIsKept(t *testing.T) {
	random := randtest.New(randtest.Seed(t))
	synctest.Test(t, func(t *testing.T) {
		slots := wrap(t, httplimit.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Rules: []httplimit.Rule{{Limit: "client=concurrency 4"}}}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
			_, _ = w.Write([]byte("ok"))
		}))
		s := &server{handler: slots, oneWay: func() time.Duration { return 5 * time.Millisecond }}
		asking(t, newTransport(t, httplimit.TransportOptions{Base: s}), 60, oneHost)
		if len(s.refused) > 0 || s.requests != 60 {
			t.Errorf("the server refused %d of %d requests, want none of 60", len(s.refused), s.requests)
		}
	})
}

func TestOptionsOfATransportAreChecked(t *testing.T) {
	rule := mustRule(t, "a=1/s")
	for want, o := range map[string]httplimit.TransportOptions{
		"weir: httplimit: transport: options: maxPause -1s is negative":                                                                                                            {MaxPause: -time.Second},
		"weir: httplimit: transport: options: maxKeys -1 is negative":                                                                                                              {MaxKeys: -1},
		"weir: httplimit: transport: options: maxWaiting -1 is negative":                                                                                                           {MaxWaiting: -1},
		"weir: layer: guard: options: onFailure 7 is no policy":                                                                                                                    {Guard: layer.GuardOptions{OnFailure: 7}},
		"weir: httplimit: transport: options: rules are 17, above 16":                                                                                                              {Rules: slices.Repeat([]httplimit.Rule{{Rule: rule}}, 17)},
		"weir: httplimit: transport: options: rules[0] has not exactly one of Limit, Rule and Plan":                                                                                {Rules: []httplimit.Rule{{}}},
		"weir: httplimit: transport: options: rules[1] has the name \"client\" of an earlier rule and would share its states: give it another name":                                {Rules: []httplimit.Rule{{Limit: "client=1/s"}, {Limit: "client=2/s"}}},
		"weir: httplimit: transport: options: rules[0].limit leaky bucket 1/s queue 3 cannot be combined with limits that servers announce: use a token bucket or a rate gate":     {Rules: []httplimit.Rule{{Limit: "client=leaky bucket 1/s queue 3"}}},
		"weir: httplimit: transport: options: rules[0].limit sliding log 1/s count denied cannot be combined with limits that servers announce: use a token bucket or a rate gate": {Rules: []httplimit.Rule{{Limit: "client=sliding log 1/s count denied"}}},
		`weir: "client=nonsense": unexpected "nonsense" at byte 8, want`:                                                                                                           {Rules: []httplimit.Rule{{Limit: "client=nonsense"}}},
	} {
		if _, err := httplimit.NewTransport(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewTransport: %v, want %s", err, want)
		}
	}
}
