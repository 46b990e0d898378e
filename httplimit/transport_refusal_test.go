package httplimit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
)

// script answers each request with the next of some answers, and then with 200. It notes when each came.
type script struct {
	mu      sync.Mutex
	answers [][]string // a status and header fields
	came    []time.Duration
	bodies  []string
	text    string // of the answers
	start   time.Time
}

func scripted(answers ...[]string) *script {
	return &script{answers: answers, text: "refused", start: time.Now()}
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came = append(s.came, time.Since(s.start))
	if r.Body != nil {
		text, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		s.bodies = append(s.bodies, string(text))
	}
	if len(s.answers) == 0 {
		return replies(r, 200, ""), nil
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	var status int
	_, _ = fmt.Sscan(answer[0], &status)
	return replies(r, status, s.text, answer[1:]...), nil
}

func says(answer ...string) []string { return answer }

// wantAbout compares instants. Each may be later by the spread of a pause.
func wantAbout(t *testing.T, what string, got []time.Duration, spread time.Duration, want ...time.Duration) {
	t.Helper()
	near := len(got) == len(want)
	for i := range want {
		near = near && got[i] >= want[i] && got[i] <= want[i]+time.Duration(i)*spread
	}
	if !near {
		t.Errorf("%s: requests at %v, want %v, each up to %v later", what, got, want, spread)
	}
}

func TestARefusedRequestIsSentAgainWhenTheServerSays(t *testing.T) {
	for name, tt := range map[string]struct {
		answers [][]string
		want    []time.Duration
	}{
		"seconds":                      {[][]string{says("429", "Retry-After: 7")}, []time.Duration{0, 7 * time.Second}},
		"a fraction":                   {[][]string{says("429", "Retry-After: 2.5")}, []time.Duration{0, 2500 * time.Millisecond}},
		"a date":                       {[][]string{says("429", "Date: Sat, 01 Jan 2000 00:00:00 GMT", "Retry-After: Sat, 01 Jan 2000 00:00:07 GMT")}, []time.Duration{0, 8 * time.Second}},
		"a date by a clock an hour on": {[][]string{says("429", "Date: Sat, 01 Jan 2000 01:00:00 GMT", "Retry-After: Sat, 01 Jan 2000 01:00:07 GMT")}, []time.Duration{0, 8 * time.Second}},
		"503":                          {[][]string{says("503", "Retry-After: 7")}, []time.Duration{0, 7 * time.Second}},
		"403 with a pause":             {[][]string{says("403", "Retry-After: 7")}, []time.Duration{0, 7 * time.Second}},
		"403 with nothing left":        {[][]string{says("403", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 7")}, []time.Duration{0, 7 * time.Second}},
		"the reset of a quota":         {[][]string{says("429", `RateLimit: "a";r=0;t=7`)}, []time.Duration{0, 7 * time.Second}},
		"Retry-After beats t":          {[][]string{says("429", `RateLimit: "a";r=0;t=70`, "Retry-After: 7")}, []time.Duration{0, 7 * time.Second}},
		"Retry-After beats the rest":   {[][]string{says("429", "X-RateLimit-Remaining: 9", "X-RateLimit-Reset-After: 2", "Retry-After: 337")}, []time.Duration{0, 337 * time.Second}},
		"no time, twice":               {[][]string{says("429"), says("429")}, []time.Duration{0, time.Second, 3 * time.Second}},
		"a pause of 0":                 {[][]string{says("429", "Retry-After: 0")}, []time.Duration{0, time.Second}},
		"a negative pause":             {[][]string{says("429", "Retry-After: -7")}, []time.Duration{0, time.Second}},
		"a date that has passed":       {[][]string{says("429", "Retry-After: Fri, 31 Dec 1999 23:00:00 GMT")}, []time.Duration{0, time.Second}},
		"an absurd pause":              {[][]string{says("429", "Retry-After: 10000000000000000000")}, []time.Duration{0, time.Second}},
		"GitHub and no time":           {[][]string{says("429", "X-GitHub-Request-Id: 1"), says("429", "X-GitHub-Request-Id: 1")}, []time.Duration{0, time.Minute, 3 * time.Minute}},
		"529":                          {[][]string{says("529", "Retry-After: 7")}, []time.Duration{0, 7 * time.Second}},
		"529 and no time":              {[][]string{says("529"), says("529")}, []time.Duration{0, time.Second, 3 * time.Second}},
		"503 and no time":              {[][]string{says("503"), says("503")}, []time.Duration{0, time.Second / 2, 3 * time.Second / 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scripted(tt.answers...)
				if status, err := ask(newTransport(t, httplimit.TransportOptions{Base: s}), "http://api.example"); status != 200 || err != nil {
					t.Errorf("%d, %v, want 200 at last", status, err)
				}
				wantAbout(t, name, s.came, time.Second, tt.want...)
			})
		})
	}
}

func TestAnswersThatAreNoRefusalsArePassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, answer := range [][]string{
			says("202", "Retry-After: 60"), // come back for the result
			says("301", "Retry-After: 60"),
			says("403"), says("404"), says("500"), says("502"), says("413", "Retry-After: 60"),
			says("429", "Stripe-Should-Retry: false", "Retry-After: 1"),
		} {
			s := scripted(answer)
			status, err := ask(newTransport(t, httplimit.TransportOptions{Base: s}), "http://api.example")
			if err != nil || fmt.Sprint(status) != answer[0] || len(s.came) != 1 {
				t.Errorf("%v: %d, %v after %d requests, want it after one", answer, status, err, len(s.came))
			}
		}
	})
}

// post sends a body of a kind, and returns the status.
func post(t *testing.T, s *script, o httplimit.TransportOptions, method string, body io.Reader, fields ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://api.example/", body)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range fields {
		r.Header.Set(field, "x")
	}
	o.Base = s
	resp, err := newTransport(t, o).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestABodyIsSentAgainOnlyWhenThatIsSafe(t *testing.T) {
	once := func(text string) io.Reader { return io.MultiReader(strings.NewReader(text)) } // has no GetBody
	for name, tt := range map[string]struct {
		status string
		method string
		body   io.Reader
		fields []string
		want   []string // the bodies that the server gets
	}{
		"POST after 429":                {"429", "POST", strings.NewReader("hello"), nil, []string{"hello", "hello"}},
		"POST of bytes after 429":       {"429", "POST", bytes.NewReader([]byte("hello")), nil, []string{"hello", "hello"}},
		"POST once after 429":           {"429", "POST", once("hello"), nil, []string{"hello"}},
		"POST after 503":                {"503", "POST", strings.NewReader("hello"), nil, []string{"hello"}},
		"PATCH after 503":               {"503", "PATCH", strings.NewReader("hello"), nil, []string{"hello"}},
		"POST with a key after 503":     {"503", "POST", strings.NewReader("hello"), []string{"Idempotency-Key"}, []string{"hello", "hello"}},
		"PUT after 503":                 {"503", "PUT", strings.NewReader("hello"), nil, []string{"hello", "hello"}},
		"PUT once after 503":            {"503", "PUT", once("hello"), nil, []string{"hello"}},
		"POST of nothing after 429":     {"429", "POST", nil, nil, nil},
		"POST of http.NoBody after 429": {"429", "POST", http.NoBody, nil, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scripted(says(tt.status, "Retry-After: 1"))
				status := post(t, s, httplimit.TransportOptions{}, tt.method, tt.body, tt.fields...)
				refused := len(tt.want) == 1
				if !slices.Equal(s.bodies, tt.want) || (status == 200) == refused {
					t.Errorf("the server gets %q, the caller %d, want %q", s.bodies, status, tt.want)
				}
			})
		})
	}
}

func TestABodyThatCannotBeMadeAgainIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("file is gone")
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://api.example/", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		r.GetBody = func() (io.ReadCloser, error) { return nil, broken }
		transport := newTransport(t, httplimit.TransportOptions{Base: scripted(says("429", "Retry-After: 1")), Rules: []httplimit.Rule{{Limit: "concurrency 1"}}})
		if resp, err := transport.RoundTrip(r); resp != nil || !errors.Is(err, broken) {
			t.Errorf("%v, %v, want %v", resp, err, broken)
		}
		if status, err := ask(transport, "http://api.example"); status != 200 || err != nil {
			t.Errorf("the next request: %d, %v, want 200", status, err)
		}
	})
}

func TestTheLastRefusalIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := says("429", "Retry-After: 1", "X-Which: limit")
		for retries, want := range map[int]int{-1: 1, 2: 3, 0: 5} {
			s := scripted(slices.Repeat([][]string{refusal}, 9)...)
			resp, err := newTransport(t, httplimit.TransportOptions{Base: s, Retries: retries}).RoundTrip(toHost(t, t.Context(), "api.example"))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			if resp.StatusCode != 429 || resp.Header.Get("X-Which") != "limit" || string(text) != "refused" || err != nil || len(s.came) != want {
				t.Errorf("Retries %d: %d %q %v after %d requests, want the refusal after %d", retries, resp.StatusCode, text, err, len(s.came), want)
			}
		}
	})
}

func TestRetriesHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := always(503)
		transport := newTransport(t, httplimit.TransportOptions{Base: base})
		for range 100 {
			if status, err := ask(transport, "http://api.example"); status != 503 || err != nil {
				t.Fatal(status, err)
			}
		}
		if s := transport.Stats(); s.Retries != 100 || s.Sent != 200 {
			t.Errorf("100 requests to a server that is down: %+v, want 100 retries", s)
		}
	})
}

func TestAPauseAboveTheBoundFailsAtOnceWithItsLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(says("429", "Retry-After: 3600"))
		transport := newTransport(t, httplimit.TransportOptions{Base: s})
		if status, err := ask(transport, "http://api.example"); status != 429 || err != nil {
			t.Fatalf("the refused request: %d, %v, want the refusal", status, err)
		}
		time.Sleep(10 * time.Minute)
		_, err := ask(transport, "http://api.example")
		var tooLong *weir.WaitError
		if !errors.As(err, &tooLong) || tooLong.Need < 50*time.Minute || tooLong.Need > 50*time.Minute+time.Second || tooLong.Bound != 10*time.Minute || tooLong.Deadline {
			t.Fatalf("a request in the pause: %v, want one that needs 50 minutes", err)
		}
		if text := err.Error(); !strings.Contains(text, "api.example") || !strings.Contains(text, "pause") || !strings.Contains(text, "10m") {
			t.Errorf("the error is %q, want the host, the reason and the bound", text)
		}
		if time.Since(s.start) != 10*time.Minute {
			t.Errorf("the failure took %v, want no time", time.Since(s.start)-10*time.Minute)
		}
		time.Sleep(45 * time.Minute)
		if status, err := ask(transport, "http://api.example"); status != 200 || err != nil {
			t.Errorf("five minutes before the end of the pause: %d, %v, want 200", status, err)
		}
		wantAbout(t, "a long pause", s.came, time.Second, 0, time.Hour)
	})
}

func TestACappedPauseIsTriedAgainAtTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(says("429", "Retry-After: 3600"), says("429", `RateLimit: "a";r=0;t=86400`))
		transport := newTransport(t, httplimit.TransportOptions{Base: s, CapPauses: true, MaxPause: time.Minute})
		if status, err := ask(transport, "http://api.example"); status != 200 || err != nil {
			t.Errorf("%d, %v, want 200", status, err)
		}
		wantAbout(t, "pauses of an hour and a day", s.came, time.Second, 0, time.Minute, 2*time.Minute)
	})
}

func TestADeadlineBeforeTheEndOfAWaitFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted(says("429", "Retry-After: 60"), says("200", `RateLimit: "a";r=0;t=60`))
		client := &http.Client{Transport: newTransport(t, httplimit.TransportOptions{Base: s}), Timeout: 5 * time.Second}
		resp, err := client.Get("http://api.example")
		if err != nil || resp.StatusCode != 429 {
			t.Fatalf("the refused request: %v, %v, want the refusal", resp, err)
		}
		_ = resp.Body.Close()
		_, err = client.Get("http://api.example")
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, weir.ErrWait) || time.Since(s.start) != 0 {
			t.Errorf("a request in the pause: %v after %v, want a deadline at once", err, time.Since(s.start))
		}
		var timeout interface{ Timeout() bool }
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%v is no timeout", err)
		}
	})
}

func TestADelayOfCenturiesFailsAtOnceBeforeADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := newTransport(t, httplimit.TransportOptions{Base: always(200), Delay: func(*http.Request) time.Duration { return math.MaxInt64 }})
		if status, err := ask(transport, "http://api.example"); status != 200 || err != nil {
			t.Fatal(status, err)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := transport.RoundTrip(toHost(t, ctx, "api.example"))
		if late, ok := errors.AsType[*weir.WaitError](err); !ok || late.Need < 1<<62 || time.Since(began) != 0 {
			t.Errorf("%v after %v, want a *weir.WaitError of centuries at once", err, time.Since(began))
		}
	})
}

func TestFiftyCallersPauseOnceForOneRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The server admits no request of the first second.
		var mu sync.Mutex
		refused, late := 0, []time.Duration(nil)
		start := time.Now()
		base := tripper(func(r *http.Request) (*http.Response, error) {
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			switch passed := time.Since(start); {
			case passed < time.Second:
				return replies(r, 200, ""), nil
			case passed < 2*time.Second:
				refused++
				return replies(r, 429, "", "Retry-After: 30"), nil
			default:
				late = append(late, passed)
				return replies(r, 200, ""), nil
			}
		})
		transport := newTransport(t, httplimit.TransportOptions{Base: base})
		if _, err := ask(transport, "http://api.example"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second - time.Since(start))
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if status, err := ask(transport, "http://api.example"); status != 200 || err != nil {
					t.Errorf("%d, %v, want 200", status, err)
				}
			})
		}
		all.Wait()
		if refused != 50 || len(late) != 50 {
			t.Fatalf("%d requests were refused and %d admitted, want each once", refused, len(late))
		}
		slices.Sort(late)
		if first, last := late[0], late[49]; first < 31*time.Second || last > 32*time.Second+100*time.Millisecond {
			t.Errorf("the pause ends at %v and the last request comes at %v, want one pause of 30 s with a spread of 1 s", first, last)
		}
		if late[0] == late[1] {
			t.Error("two requests follow the pause at once, want one until it is answered")
		}
	})
}

func TestAPauseIsNeverShortenedAndItsEndIsSpread(t *testing.T) {
	ends := map[time.Duration]bool{}
	for range 8 {
		synctest.Test(t, func(t *testing.T) {
			s := scripted(says("429", "Retry-After: 20"))
			if _, err := ask(newTransport(t, httplimit.TransportOptions{Base: s}), "http://api.example"); err != nil {
				t.Fatal(err)
			}
			wantAbout(t, "a pause", s.came, time.Second, 0, 20*time.Second)
			ends[s.came[1]] = true
		})
	}
	if len(ends) < 2 {
		t.Errorf("eight clients come back at one instant, %v", ends)
	}
}

// A server that announces nothing admits 20 requests a second, and refuses the others.
func TestWithoutAnnouncementsTheRateIsCutAndGrowsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(20), Burst: 20})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		admitted, refused := 0, 0
		base := tripper(func(r *http.Request) (*http.Response, error) {
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			if !limit.Allow() {
				refused++
				return replies(r, 429, ""), nil
			}
			admitted++
			return replies(r, 200, ""), nil
		})
		transport := newTransport(t, httplimit.TransportOptions{Base: base, Retries: 20})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for {
					resp, err := transport.RoundTrip(toHost(t, ctx, "api.example"))
					if err != nil {
						return // the end of the context
					}
					_ = resp.Body.Close()
				}
			})
		}
		all.Wait()
		if admitted < 3000 || refused > admitted/20 {
			t.Errorf("of 6000 requests that the server would admit in 5 minutes, %d passed, and %d were refused; want half of them, and at most 5 %% refusals", admitted, refused)
		}
		t.Logf("%d admitted, %d refused, %+v", admitted, refused, transport.Stats())
	})
}
