package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/internal/layertest"
)

// inBubble runs a test in virtual time, on a memory engine with the default clock.
func inBubble(t *testing.T, test func(t *testing.T, a *API), rules ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, newAPI(t, weir.NewMemory(weir.MemoryOptions{}), rules...))
	})
}

// caller is a request that may wait.
type caller struct {
	leave  context.CancelFunc
	answer chan *httptest.ResponseRecorder
	took   time.Duration // valid after the answer
}

// send sends a request, and returns once it waits or is answered.
func send(a *API, path, body string) *caller {
	ctx, leave := context.WithCancel(context.Background())
	c := &caller{leave: leave, answer: make(chan *httptest.ResponseRecorder, 1)}
	began := time.Now()
	go func() {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body)))
		c.took = time.Since(began)
		c.answer <- w
	}()
	synctest.Wait()
	return c
}

const oneAtATime = "default=token bucket 1/s burst 1"

func TestWaitsAreGrantedInArrivalOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		var callers []*caller
		for range 20 {
			callers = append(callers, send(a, "/v1/wait", `{"key":"a","patience":30}`))
		}
		for i, c := range callers {
			w := <-c.answer
			if want := time.Duration(i) * time.Second; w.Code != 200 || !strings.HasPrefix(w.Body.String(), `{"allowed":true,`) || c.took != want {
				t.Errorf("caller %d: got %d %s after %v, want a grant after %v", i, w.Code, w.Body, c.took, want)
			}
		}
	}, oneAtATime)
}

func TestWaitTakesSeveralRequestsAtOneInstantOrNone(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		post(a, "/v1/take", `{"key":"a"}`)
		post(a, "/v1/take", `{"rule":"total","key":""}`)
		c := send(a, "/v1/wait", `{"patience":30,"requests":[{"key":"a"},{"rule":"total","key":""}]}`)
		if got := post(a, "/v1/peek", `{"key":"b","cost":1}`).Body.String(); !strings.Contains(got, `"remaining":1,`) {
			t.Errorf("another key: %s", got)
		}
		if w := <-c.answer; w.Code != 200 || c.took != 10*time.Second {
			t.Errorf("got %d %s after %v, want a grant after the 10s of the slower rule", w.Code, w.Body, c.took)
		}
		time.Sleep(0)
		if got := post(a, "/v1/peek", `{"rule":"total","key":""}`).Body.String(); !strings.Contains(got, `"allowed":false,`) {
			t.Errorf("after the grant the total has a unit left: %s", got)
		}
	}, oneAtATime, "total=token bucket 1/10s burst 1")
}

// A wait that is longer than the caller's patience is refused at once.
func TestWaitsAreBoundedByTheCallersPatience(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		post(a, "/v1/take", `{"key":"a"}`)
		c := send(a, "/v1/wait", `{"key":"a","patience":9.999999999}`)
		w := <-c.answer
		if want := `{"allowed":false,"rule":"default","key":"a","limit":1,"remaining":0,"retry_after":10,"reset_after":10,"delay":0,"refused_by":0,"cause":"count"}` + "\n"; w.Code != 200 || w.Body.String() != want || c.took != 0 {
			t.Errorf("got %d %safter %v, want %s at once", w.Code, w.Body, c.took, want)
		}
		c = send(a, "/v1/wait", `{"key":"a","patience":10.000000001}`)
		if w := <-c.answer; !strings.HasPrefix(w.Body.String(), `{"allowed":true,`) || c.took != 10*time.Second {
			t.Errorf("got %s after %v, want a grant after 10s", w.Body, c.took)
		}
		if c = send(a, "/v1/wait", `{"key":"a","patience":0}`); !strings.HasPrefix((<-c.answer).Body.String(), `{"allowed":false,`) || c.took != 0 {
			t.Errorf("without patience: an answer after %v, want a refusal at once", c.took)
		}
	}, "default=token bucket 1/10s burst 1")
}

func TestWaitsAreBoundedByTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPIWith(t, decide.Options{Engine: layertest.Around(weir.NewMemory(weir.MemoryOptions{})), Wait: decide.WaitOptions{Longest: 5 * time.Second, Callers: 2}}, "jobs=concurrency 1 lease 10m")
		const ask = `{"rule":"jobs","key":"a","patience":3600}`
		post(a, "/v1/reserve", ask)
		first, second := send(a, "/v1/reserve", ask), send(a, "/v1/reserve", ask)
		if w := <-send(a, "/v1/reserve", ask).answer; w.Code != 503 || !strings.Contains(w.Body.String(), "too many callers wait, or their requests are too large, and nothing was taken") {
			t.Errorf("a third waiting caller of 2: got %d %s", w.Code, w.Body)
		}
		for _, c := range []*caller{first, second} {
			if w := <-c.answer; w.Code != 200 || !strings.HasPrefix(w.Body.String(), `{"allowed":false,`) || c.took != 5*time.Second {
				t.Errorf("got %d %s after %v, want a refusal after the daemon's 5s", w.Code, w.Body, c.took)
			}
		}
	})
}

// Waiting callers with more than 16 KiB of requests hold at most that much for each of --max-waiting.
func TestTheMemoryOfWaitingCallersIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places, place = 64, 16 << 10
		a := newAPIWith(t, decide.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Wait: decide.WaitOptions{Callers: places}}, slowly, "one=token bucket 1/10s burst 1")
		post(a, "/v1/take", `{"rule":"one","key":"a"}`)
		large := `{"patience":30,"requests":[{"rule":"one","key":"a"},` + strings.TrimPrefix(askFor(100, 4096, ""), `{"requests":[`)
		before := heapInUse()
		var callers []*caller
		for range 2 { // 27 places each
			callers = append(callers, send(a, "/v1/wait", large))
		}
		if used, most := heapInUse()-before, 3*places*place; used > most {
			t.Errorf("two large callers hold %d KiB, want at most %d, three times their requests", used>>10, most>>10)
		}
		refused := send(a, "/v1/wait", large)
		if w := <-refused.answer; w.Code != 503 || !strings.Contains(w.Body.String(), "their requests are too large, and nothing was taken") {
			t.Errorf("a third large caller: got %d %s", w.Code, w.Body)
		}
		small := send(a, "/v1/wait", `{"rule":"one","key":"b","patience":30}`)
		if w := <-small.answer; w.Code != 200 {
			t.Errorf("a small caller beside them: got %d %s", w.Code, w.Body)
		}
		for _, c := range callers {
			if w := <-c.answer; w.Code != 200 {
				t.Errorf("a large caller: got %d %s", w.Code, w.Body)
			}
		}
		checkWaiting(t, a, `{"callers":0,"oldest":0,"granted":3,"refused":{"engine":0,"full":1,"left":0,"never":0,"patience":0,"stop":0}`)
		for range 2 { // the places are free again
			callers = append(callers, send(a, "/v1/wait", large))
			if w := <-callers[len(callers)-1].answer; w.Code != 200 {
				t.Errorf("a large caller when nobody waits: got %d %s", w.Code, w.Body)
			}
		}
	})
}

func TestACostAboveTheCapacityIsNotWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		c := send(a, "/v1/wait", `{"key":"a","cost":2,"patience":30}`)
		if w := <-c.answer; !strings.HasPrefix(w.Body.String(), `{"allowed":false,`) || !strings.Contains(w.Body.String(), `"retry_after":null`) || c.took != 0 {
			t.Errorf("got %s after %v, want a refusal at once, without a retry", w.Body, c.took)
		}
	}, oneAtATime)
}

// The place of a caller whose client goes away passes on, and takes nothing.
func TestAClientThatGoesAwayLosesNoUnits(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		post(a, "/v1/take", `{"key":"a"}`)
		var callers []*caller
		for range 10 {
			callers = append(callers, send(a, "/v1/wait", `{"key":"a","patience":30}`))
		}
		for _, i := range []int{0, 3, 4, 9} {
			callers[i].leave()
			<-callers[i].answer
		}
		for place, i := range []int{1, 2, 5, 6, 7, 8} {
			c := callers[i]
			if w := <-c.answer; w.Code != 200 || c.took != time.Duration(place+1)*time.Second {
				t.Errorf("caller %d: got %d %s after %v, want a grant after %d s", i, w.Code, w.Body, c.took, place+1)
			}
		}
		checkWaiting(t, a, `{"callers":0,"oldest":0,"granted":6,"refused":{"engine":0,"full":0,"left":4,"never":0,"patience":0,"stop":0}`)
	}, oneAtATime)
}

// leaving returns an engine that ends a client while it answers.
func leaving(engine weir.Engine, leave context.CancelFunc) weir.Engine {
	return weir.Wrap(engine, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		a, err := next(ctx, c)
		if c.Op == weir.OpTake || c.Op == weir.OpReserve {
			leave()
		}
		return a, err
	})
}

func TestAGrantThatNoClientReadsIsGivenBack(t *testing.T) {
	for _, path := range []string{"/v1/wait", "/v1/reserve"} {
		for _, patience := range []string{"0", "30"} {
			memory := weir.NewMemory(weir.MemoryOptions{})
			ctx, leave := context.WithCancel(t.Context())
			a := newAPI(t, leaving(memory, leave), "default=token bucket 5/366d")
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(`{"key":"a","cost":3,"patience":`+patience+`}`))
			a.ServeHTTP(httptest.NewRecorder(), r)
			d, err := memory.Peek(t.Context(), a.desk.InForce().Rule([]byte("default")).For("a", 0))
			if err != nil || d.Remaining != 5 {
				t.Errorf("%s with patience %s: %d units are left (%v), want 5", path, patience, d.Remaining, err)
			}
		}
	}
}

func TestAStopAnswersWaitingCallers(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		post(a, "/v1/take", `{"key":"a"}`)
		callers := []*caller{send(a, "/v1/wait", `{"key":"a","patience":30}`), send(a, "/v1/wait", `{"key":"a","patience":30}`), send(a, "/v1/reserve", `{"key":"a","patience":30}`)}
		a.Stopping()
		callers = append(callers, send(a, "/v1/wait", `{"key":"a","patience":30}`), send(a, "/v1/reserve", `{"key":"b"}`))
		for i, c := range callers {
			w := <-c.answer
			checkProblem(t, fmt.Sprint("caller ", i), w, fault{status: 503, detail: "the daemon is stopping, and the caller was not admitted; wait again, at another instance or after a second"})
			if c.took != 0 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"counted":"no"`) {
				t.Errorf("caller %d: %s %q after %v, want an answer at the stop, not counted, with Retry-After", i, w.Body, w.Header(), c.took)
			}
		}
		if got := post(a, "/v1/peek", `{"key":"a","cost":0}`).Body.String(); !strings.Contains(got, `"remaining":0,`) {
			t.Error(got)
		}
		time.Sleep(time.Second)
		if got := post(a, "/v1/take", `{"key":"a"}`).Body.String(); !strings.HasPrefix(got, `{"allowed":true,`) {
			t.Errorf("a second after the stop: %s, want the unit that no waiting caller has taken", got)
		}
	}, oneAtATime)
}

func TestStatsTellWaitingCallers(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		post(a, "/v1/take", `{"rule":"slow","key":"a"}`)
		first := send(a, "/v1/wait", `{"rule":"slow","key":"a","patience":60}`)
		time.Sleep(1500 * time.Millisecond)
		second := send(a, "/v1/wait", `{"requests":[{"rule":"slow","key":"a"},{"key":"b"}],"patience":60}`)
		<-send(a, "/v1/wait", `{"key":"b","cost":9,"patience":1}`).answer
		const none = `"refused":{"engine":0,"full":0,"left":0,"never":0,"patience":0,"stop":0}`
		checkWaiting(t, a, `{"callers":2,"oldest":1.5,"granted":0,"refused":{"engine":0,"full":0,"left":0,"never":1,"patience":0,"stop":0},"rules":[`+
			`{"rule":"default","callers":1,"oldest":0,"granted":0,"refused":{"engine":0,"full":0,"left":0,"never":1,"patience":0,"stop":0}},`+
			`{"rule":"slow","callers":2,"oldest":1.5,"granted":0,`+none+`}]}`)
		second.leave()
		<-second.answer
		<-first.answer
		checkWaiting(t, a, `{"callers":0,"oldest":0,"granted":1,"refused":{"engine":0,"full":0,"left":1,"never":1,`)
	}, oneAtATime, "slow=token bucket 1/10s burst 1")
}

func checkWaiting(t *testing.T, a *API, want string) {
	t.Helper()
	var stats struct{ Waiting json.RawMessage }
	if err := json.Unmarshal(get(a, "/v1/stats").Body.Bytes(), &stats); err != nil || !strings.HasPrefix(string(stats.Waiting), want) {
		t.Errorf("stats of waiting callers (%v):\n got %s\nwant %s…", err, stats.Waiting, want)
	}
}

func TestWaitsThatMakeNoSenseSayWhatAndWhere(t *testing.T) {
	f := newFixture(t, usual, "jobs=concurrency 2 lease 1m", "line=leaky bucket 4/s queue 2")
	const bad, plain = http.StatusBadRequest, ", not a number of seconds of 0 or more in plain digits, with at most nine decimals, like 30 or 2.5"
	for _, test := range []fault{
		{"wait", `{"key":"a","patience":-1}`, bad, "patience", "patience is -1" + plain},
		{"wait", `{"key":"a","patience":1e3}`, bad, "patience", "patience is 1e3" + plain},
		{"wait", `{"key":"a","patience":0.0000000001}`, bad, "patience", "patience is 0.0000000001" + plain},
		{"wait", `{"key":"a","patience":99999999999}`, bad, "patience", "patience is 99999999999" + plain},
		{"wait", `{"key":"a","patience":"30"}`, bad, "patience", "patience is a string, not a number of seconds"},
		{"wait", `{"requests":[{"key":"a","patience":1}]}`, bad, "requests[0]", `requests[0] has the field "patience", not one of rule, key, cost`},
		{"wait", `{"key":"a","x":1}`, bad, "body", `body has the field "x", not one of rule, key, cost, requests, patience`},
		{"take", `{"key":"a","patience":1}`, bad, "body", `body has the field "patience", not one of rule, key, cost, requests`},
		{"wait", `{"rule":"jobs","key":"a"}`, bad, "rule", "rule holds slots, which a wait could not release; POST /v1/reserve waits for them and answers with a token"},
		{"reserve", `{"rule":"line","key":"a"}`, bad, "rule", `rule "line": rule is a leaky bucket, whose delay a reservation cannot tell`},
		{"settle", `{}`, bad, "token", "token is missing; /v1/reserve answers with one"},
		{"settle", `{"token":""}`, bad, "token", "token is empty; /v1/reserve answers with one"},
		{"settle", `{"token":"x","cost":1,"costs":[1]}`, bad, "costs", "costs excludes cost"},
		{"settle", `{"token":"x","costs":[]}`, bad, "costs", "costs is empty"},
		{"settle", `{"token":"x","cost":-1}`, bad, "cost", "cost is -1, below 0; /v1/return gives units back"},
		{"settle", `{"token":"x","key":"a"}`, bad, "body", `body has the field "key", not one of token, cost, costs`},
		{"settle", `{"token":"x"} {}`, bad, "body", "body continues after the document"},
		{"renew", `{"token":"x","cost":1}`, bad, "body", `body has the field "cost", not one of token`},
		{"renew", `{"token":"x"}`, 404, "token", "token is unknown: it was settled, or has expired, or is of another engine; nothing was changed"},
	} {
		checkProblem(t, test.path+" "+test.body, post(f, "/v1/"+test.path, test.body), test)
	}
}

// What comes back through the daemon lets the waiting caller go at once, however it was taken.
func TestUnitsThatComeBackLetAWaitingCallerGo(t *testing.T) {
	for name, back := range map[string]func(a *API, token string){
		"settle": func(a *API, token string) { post(a, "/v1/settle", `{"token":"`+token+`","cost":0}`) },
		"return": func(a *API, _ string) { post(a, "/v1/return", `{"key":"a","cost":10}`) },
		"reset":  func(a *API, _ string) { post(a, "/v1/reset", `{"key":"a"}`) },
	} {
		inBubble(t, func(t *testing.T, a *API) {
			token := tokenOf(t, post(a, "/v1/reserve", `{"key":"a","cost":10}`))
			began := time.Now()
			went := make(chan time.Duration, 1)
			go func() {
				w := post(a, "/v1/wait", `{"key":"a","patience":50}`)
				t.Log(name, w.Code, w.Body)
				went <- time.Since(began)
			}()
			synctest.Wait()
			back(a, token)
			if took := <-went; took > 0 {
				t.Errorf("after %s the waiting caller goes %v later, want at once", name, took)
			}
		}, "default=token bucket 1/30s burst 10")
	}
}
