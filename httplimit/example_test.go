package httplimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
)

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }

func ExamplePerClient() {
	limited, err := httplimit.PerClient("2/m and 1000/d")
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := limited(http.HandlerFunc(hello)) // http.ListenAndServe(":8080", handler)

	for range 3 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Printf("%d %s %q\n", w.Code, w.Header().Get("RateLimit"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 "client-1";r=1;t=30 ""
	// 200 "client-1";r=0;t=60 ""
	// 429 "client-1";r=0;t=30 "30"
}

// Hashed keeps the API keys themselves out of the engine.
func ExamplePerKey() {
	limited, err := httplimit.PerKey("1/m", httplimit.Hashed(httplimit.Header("X-Api-Key")))
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := limited(http.HandlerFunc(hello))

	for _, key := range []string{"alice", "alice", "bob"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Api-Key", key)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(key, w.Code)
	}
	// Output:
	// alice 200
	// alice 429
	// bob 200
}

// Plans by tenant, a limit for all tenants together, and slots: one decision.
func ExampleNew() {
	free, _ := weir.ParseRule("plan=1/m")
	paid, _ := weir.ParseRule("plan=100/m")
	plans := map[string]*weir.Rule{"acme": paid}
	planOf := func(r *http.Request) *weir.Rule {
		if plan, ok := plans[r.Header.Get("Tenant")]; ok {
			return plan
		}
		return free
	}
	limited, err := httplimit.New(httplimit.Options{
		Engine: weir.NewMemory(weir.MemoryOptions{}), // or one of redislimit
		Rules: []httplimit.Rule{
			{Plan: planOf, Key: httplimit.Header("Tenant"), Missing: httplimit.MissingRefused},
			{Limit: "all=1000/s and concurrency 50", Key: httplimit.Everyone},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := limited(http.HandlerFunc(hello))

	for _, tenant := range []string{"acme", "acme", "tiny", "tiny", ""} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Tenant", tenant)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Printf("%q %d\n", tenant, w.Code)
	}
	// Output:
	// "acme" 200
	// "acme" 200
	// "tiny" 200
	// "tiny" 429
	// "" 400
}

func ExampleNewClient() {
	client, err := httplimit.NewClient(httplimit.ClientOptions{Trusted: []string{"10.0.0.0/8"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	limited, err := httplimit.New(httplimit.Options{
		Client: client,
		Rules:  []httplimit.Rule{{Limit: "60/m"}},
	})
	fmt.Println(limited != nil, err)

	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.7:41234"
	r.Header.Set("X-Forwarded-For", "6.6.6.6, 203.0.113.9") // the first was sent by the client
	fmt.Println(client.Key(r))
	// Output:
	// true <nil>
	// 203.0.113.9
}

func ExampleSettle() {
	answerPrompt := func(w http.ResponseWriter, r *http.Request) {
		used := int64(120) // tokens
		httplimit.Settle(r.Context(), "tokens", used)
	}
	rule, _ := weir.ParseRule("tokens=10000/d")
	engine := weir.NewMemory(weir.MemoryOptions{})
	limited, err := httplimit.New(httplimit.Options{Engine: engine, Rules: []httplimit.Rule{{
		Rule:    rule,
		Cost:    func(*http.Request) int64 { return 4000 }, // the most that a request can use
		Settled: true,
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest("GET", "/", nil)
	limited(http.HandlerFunc(answerPrompt)).ServeHTTP(httptest.NewRecorder(), r)

	d, err := engine.Peek(context.Background(), rule.For("192.0.2.1", 1))
	fmt.Println(d.Remaining, err)
	// Output: 9880 <nil>
}
