package httplimit_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
)

// docs/howto/client.md shows functions of this file, whole or in part.

// obedient returns a client that learns the limits of each host from its answers.
func obedient() (*http.Client, error) {
	transport, err := httplimit.NewTransport(httplimit.TransportOptions{})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport}, nil
}

// vendorClient keeps the terms of a vendor: 100 requests in any 10 seconds, 5,000 a day, and 8 at a time.
func vendorClient(engine weir.Engine) (*http.Client, error) {
	transport, err := httplimit.NewTransport(httplimit.TransportOptions{
		Engine: engine, // in this process, or in Redis for all machines
		Rules:  []httplimit.Rule{{Limit: "vendor=rate gate 100/10s and fixed window 5000/d and concurrency 8 lease 1m"}},
	})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport}, nil
}

// modelClient keeps the limits of requests and of tokens that the server of a language model announces.
func modelClient() (*http.Client, error) {
	transport, err := httplimit.NewTransport(httplimit.TransportOptions{
		Tokens: func(r *http.Request) httplimit.Tokens {
			return httplimit.Tokens{Input: r.ContentLength/4 + 1, Output: 500} // four bytes a token, and max_tokens
		},
	})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport}, nil
}

// throttled finds the refusals of a GraphQL server, which come with 200.
func throttled(answer *http.Response) (wait time.Duration, ok bool) {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), answer.Body), answer.Body}
	return 7 * time.Second, bytes.Contains(text, []byte("THROTTLED"))
}

func TestTheClientsOfTheDocumentWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{handler: ok}
		plain, err := obedient()
		if err != nil {
			t.Fatal(err)
		}
		terms, err := vendorClient(weir.NewMemory(weir.MemoryOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		model, err := modelClient()
		if err != nil {
			t.Fatal(err)
		}
		budget := model.Transport.(*httplimit.Transport).Over(always(200, "X-Ratelimit-Remaining-Tokens: 400", "X-Ratelimit-Reset-Tokens: 7s"))
		for _, want := range []time.Duration{0, 7 * time.Second} {
			start := time.Now()
			if status, err := ask(budget, "http://model.example/"); status != 200 || err != nil || time.Since(start) != want {
				t.Errorf("model: %d, %v after %v, want 200 after %v", status, err, time.Since(start), want)
			}
		}
		for name, want := range map[string]time.Duration{"plain": 0, "terms": 10 * time.Second} {
			client := map[string]*http.Client{"plain": plain, "terms": terms}[name]
			start := time.Now()
			for range 101 {
				if status, err := ask(client.Transport.(*httplimit.Transport).Over(s), "http://api.example/"); err != nil || status != 200 {
					t.Fatalf("%s: %d, %v, want 200", name, status, err)
				}
			}
			if took := time.Since(start); took != want {
				t.Errorf("%s: 101 requests took %v, want %v", name, took, want)
			}
		}
	})
}
