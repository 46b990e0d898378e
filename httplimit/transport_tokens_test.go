package httplimit_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/httplimit"
)

// stream sends a request and reads its answer, which takes a while.
func stream(t *testing.T, transport http.RoundTripper, c call, takes time.Duration) {
	resp, err := transport.RoundTrip(c.request(t))
	if err != nil {
		t.Error(err)
		return
	}
	time.Sleep(takes)
	_, _ = io.Copy(io.Discard, resp.Body)
	if _ = resp.Body.Close(); resp.StatusCode != 200 {
		t.Errorf("%+v got %d, want 200", c, resp.StatusCode)
	}
}

// announced answers the first request with a remainder of 1,000 tokens for a minute, and later ones with bodies alone.
func announced(bodies ...io.Reader) tripper {
	var asked atomic.Int64
	return func(r *http.Request) (*http.Response, error) {
		n := asked.Add(1)
		if n == 1 {
			return replies(r, 200, "", "X-Ratelimit-Limit-Tokens: 4000", "X-Ratelimit-Remaining-Tokens: 1000", "X-Ratelimit-Reset-Tokens: 1m0s"), nil
		}
		resp := replies(r, 200, "")
		if n-2 < int64(len(bodies)) {
			resp.Body = io.NopCloser(bodies[n-2])
		}
		return resp, nil
	}
}

// slow answers a second later.
func slow(base tripper) tripper {
	return func(r *http.Request) (*http.Response, error) {
		time.Sleep(time.Second)
		return base(r)
	}
}

// all is an estimate of a sum.
func all(n int64) call { return call{estimate: httplimit.Tokens{Input: n}} }

func TestGoroutinesShareOneAnnouncement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := newTransport(t, httplimit.TransportOptions{Tokens: estimated, Base: slow(announced())})
		stream(t, transport, all(10), 0)
		for range 50 {
			go stream(t, transport, all(300), 0)
		}
		time.Sleep(59 * time.Second)
		if sent := transport.Stats().Sent; sent != 4 {
			t.Errorf("%d requests of 300 tokens were sent on a remainder of 1,000, want 3", sent-1)
		}
		time.Sleep(2 * time.Minute)
	})
}

// waited returns how long a request of some tokens waits.
func waited(t *testing.T, transport http.RoundTripper, tokens int64) time.Duration {
	start := time.Now()
	stream(t, transport, all(tokens), 0)
	return time.Since(start)
}

// fits reports whether a request of some tokens waits for nothing, after one with an estimate whose answer is read or left.
func fits(t *testing.T, tokens, estimate int64, body string, leave bool) (now bool) {
	synctest.Test(t, func(t *testing.T) {
		transport := newTransport(t, httplimit.TransportOptions{Base: announced(strings.NewReader(body)), Tokens: estimated})
		stream(t, transport, all(10), 0)
		resp, err := transport.RoundTrip(all(estimate).request(t))
		if err != nil {
			t.Fatal(err)
		}
		read := int64(1 << 30)
		if leave {
			read = 100
		}
		_, _ = io.CopyN(io.Discard, resp.Body, read)
		_ = resp.Body.Close()
		now = waited(t, transport, tokens) == 0
	})
	return now
}

// usedBy returns how many of 1,000 tokens a request has used.
func usedBy(t *testing.T, estimate int64, body string, leave bool) int64 {
	return 1000 - int64(sort.Search(1000, func(tokens int) bool { return !fits(t, int64(tokens+1), estimate, body, leave) }))
}

func TestTheAnswerSettlesTheEstimate(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, row := range map[string]struct {
		body string
		want int64 // of an estimate of 500
	}{
		"OpenAI":                    {`{"choices":[{"text":"` + long + `"}], "usage": {` + "\n" + `"prompt_tokens": 20, "completion_tokens": 30, "total_tokens": 50, "prompt_tokens_details": {"cached_tokens": 3}}}`, 50},
		"OpenAI's embeddings":       {`{"usage":{"prompt_tokens":70,"total_tokens":70}}`, 70},
		"OpenAI's responses":        {`data: {"response":{"output":["` + long + `"],"usage":{"input_tokens":20,"input_tokens_details":{},"output_tokens":700,"total_tokens":720}}}`, 720},
		"OpenAI's stream":           {stated(httplimit.Tokens{Input: 300, Output: 400}), 700},
		"Anthropic":                 {`{"content":[{"type":"usage"}],"usage":{"input_tokens":30,"output_tokens":40,"cache_creation_input_tokens":5,"cache_read_input_tokens":900}}`, 75},
		"Anthropic's stream":        {`data: {"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}` + "\n\n" + `data: {"type":"message_delta","usage":{"output_tokens":15}}`, 40},
		"an answer about usage":     {`{"text":"\"usage\":{\"total_tokens\":1}"}`, 500},
		"no usage":                  {`{"usage":null}`, 500},
		"an empty usage":            {`{"usage":{}}`, 500},
		"another usage":             {`{"usage":{"seconds":3}}`, 500},
		"an unfinished usage":       {`{"usage":{"total_tokens":1`, 500},
		"negative tokens":           {`{"usage":{"total_tokens":-5}}`, 500},
		"tokens as a text":          {`{"usage":{"total_tokens":"5"}}`, 500},
		"tokens beyond all numbers": {`{"usage":{"total_tokens":1e400}}`, 500},
		"as many as there can be":   {`{"usage":{"total_tokens":9223372036854775807,"prompt_tokens":9223372036854775807}}`, 1000},
		"a usage that is too long":  {`{"usage":{"x":"` + long + `","total_tokens":1}}`, 500},
		"deep braces":               {`{"usage":` + strings.Repeat(`{"usage":`, 5000), 500},
	} {
		t.Run(name, func(t *testing.T) {
			if got := usedBy(t, 500, row.body, false); got != row.want {
				t.Errorf("%d of 1,000 tokens are used after an estimate of 500, want %d", got, row.want)
			}
		})
	}
}

// The server does not say whether it corrects a remainder that it has announced, so only what is used above the estimate counts.
func TestAnAnnouncedRemainderCountsItsOwnRequest(t *testing.T) {
	for used, want := range map[int64]int64{100: 1000, 500: 1000, 700: 800} {
		for _, more := range []int64{0, 1} {
			synctest.Test(t, func(t *testing.T) {
				first := announced()
				transport := newTransport(t, httplimit.TransportOptions{Tokens: estimated, Base: tripper(func(r *http.Request) (*http.Response, error) {
					resp, err := first(r)
					resp.Body = io.NopCloser(strings.NewReader(stated(httplimit.Tokens{Input: used})))
					return resp, err
				})})
				stream(t, transport, all(500), 0)
				if wait := waited(t, transport, want+more); (wait > 0) != (more > 0) {
					t.Errorf("a request of %d tokens waits for %v after the first used %d of its 500, want that %d fit", want+more, wait, used, want)
				}
			})
		}
	}
}

// The remainder may count the whole estimate of a request that was answered before it, so what comes back is not known.
func TestAnEarlierAnswerGivesNothingBackToALaterRemainder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, announces := 0, announced()
		transport := newTransport(t, httplimit.TransportOptions{Tokens: estimated, Base: tripper(func(r *http.Request) (*http.Response, error) {
			if asked++; asked == 1 {
				return replies(r, 200, stated(httplimit.Tokens{Input: 100})), nil
			}
			return announces(r)
		})})
		earlier, err := transport.RoundTrip(all(500).request(t))
		if err != nil {
			t.Fatal(err)
		}
		stream(t, transport, all(10), 0)
		_, _ = io.Copy(io.Discard, earlier.Body)
		if wait := waited(t, transport, 1001); wait != time.Minute {
			t.Errorf("1,001 of 1,000 tokens wait for %v, want until the reset in 1m", wait)
		}
	})
}

// The server knows better than its reset when a refused request fits.
func TestARefusalForTokensIsRepeatedAtItsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := false
		transport := newTransport(t, httplimit.TransportOptions{Tokens: estimated, Base: tripper(func(r *http.Request) (*http.Response, error) {
			if !refused {
				refused = true
				return replies(r, 429, "", "X-Ratelimit-Remaining-Tokens: 100", "X-Ratelimit-Reset-Tokens: 1m0s", "Retry-After: 2"), nil
			}
			return replies(r, 200, ""), nil
		})})
		if wait := waited(t, transport, 500); wait < 2*time.Second || wait > 3*time.Second {
			t.Errorf("a refused request takes %v, want the 2s of its Retry-After, and at most 1s more", wait)
		}
	})
}

// A stream that is left has stated less than it uses.
func TestAnAnswerThatIsLeftGivesNothingBack(t *testing.T) {
	for used, want := range map[int64]int64{1: 500, 800: 800} {
		body := fmt.Sprintf(`data: {"usage":{"input_tokens":%d}}%s`, used, strings.Repeat(" ", 200))
		if got := usedBy(t, 500, body, true); got != want {
			t.Errorf("an answer that says %d so far has used %d, want %d", used, got, want)
		}
	}
}

func TestTheUsageIsFoundInPartsOfAnyLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := newTransport(t, httplimit.TransportOptions{Tokens: estimated, Base: announced(iotest.OneByteReader(strings.NewReader(stated(httplimit.Tokens{Output: 100}))))})
		stream(t, transport, all(10), 0)
		stream(t, transport, all(500), 0)
		if wait := waited(t, transport, 900); wait != 0 {
			t.Errorf("900 of 1,000 tokens wait for %v after 100 were used, want none", wait)
		}
	})
}

// A caller that stops waiting holds no tokens.
func TestACallerThatLeavesHoldsNoTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := newTransport(t, httplimit.TransportOptions{Base: announced(), Tokens: estimated})
		stream(t, transport, all(10), 0)
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, leave)
		if _, err := transport.RoundTrip(all(1001).request(t).WithContext(context.WithValue(ctx, callKey{}, all(1001)))); err == nil {
			t.Error("1,001 of 1,000 tokens were sent")
		}
		if wait := waited(t, transport, 1000); wait != 0 {
			t.Errorf("1,000 of 1,000 tokens wait for %v, want none", wait)
		}
		if wait := waited(t, transport, 0); wait != 0 {
			t.Errorf("a request that needs no tokens waits for %v, want none", wait)
		}
		if wait := waited(t, transport, 1); wait != 50*time.Second {
			t.Errorf("the next token waits for %v, want until the reset in 50s", wait)
		}
	})
}

func TestWithoutAFunctionTokensAreNotCounted(t *testing.T) {
	for remaining, want := range map[string]time.Duration{"1": 0, "0": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			transport := newTransport(t, httplimit.TransportOptions{Base: always(200, "X-Ratelimit-Remaining-Tokens: "+remaining, "X-Ratelimit-Reset-Tokens: 1m0s")})
			stream(t, transport, all(500), 0)
			if wait := waited(t, transport, 500); wait != want {
				t.Errorf("with %s tokens left a request waits for %v, want %v", remaining, wait, want)
			}
		})
	}
}

func TestABudgetOfTokensThatCannotBeReadHoldsNothingBack(t *testing.T) {
	for _, text := range []string{"-1", "-0", "NaN", "Inf", "1e9", "1e400", "+5", "99999999999999999999", "0x10", "many"} {
		synctest.Test(t, func(t *testing.T) {
			transport := newTransport(t, httplimit.TransportOptions{Tokens: estimated, Base: always(200,
				"X-Ratelimit-Remaining-Tokens: "+text, "X-Ratelimit-Reset-Tokens: 1m0s", "Anthropic-Ratelimit-Input-Tokens-Remaining: "+text, "Anthropic-Ratelimit-Input-Tokens-Reset: "+text)})
			for range 3 {
				if wait := waited(t, transport, 1<<62); wait != 0 {
					t.Errorf("with %q tokens left a request waits for %v, want none", text, wait)
				}
			}
		})
	}
}

// More than a whole budget is sent alone after the reset, and the server decides.
func TestAnEstimateAboveTheLimitIsSentAtTheReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := newTransport(t, httplimit.TransportOptions{Base: slow(announced()), Tokens: estimated})
		stream(t, transport, all(10), 0)
		if took := waited(t, transport, 1<<62); took != time.Minute+time.Second {
			t.Errorf("a request above the limit takes %v, want 1s after the reset in 1m", took)
		}
		var two sync.WaitGroup
		start := time.Now()
		for range 2 {
			two.Go(func() { stream(t, transport, all(1<<62), 0) })
		}
		if two.Wait(); time.Since(start) != time.Second {
			t.Errorf("two requests take %v, want 1s: the server no longer announces a budget", time.Since(start))
		}
	})
}
