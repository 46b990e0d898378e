package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/layer"
)

// tokenOf returns the token of an answer.
func tokenOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var answer struct{ Token string }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Token) < 26 {
		t.Fatalf("got %d %s (%v), want a token of 26 letters at least", w.Code, w.Body, err)
	}
	return answer.Token
}

func checkRemaining(t *testing.T, a *API, rule, key, want string) {
	t.Helper()
	if got := post(a, "/v1/peek", `{"rule":"`+rule+`","key":"`+key+`","cost":0}`).Body.String(); !strings.Contains(got, `"remaining":`+want+`,`) {
		t.Errorf("rule %s, key %s: %s, want %s remaining", rule, key, got, want)
	}
}

const slowly = "default=token bucket 10/366d"

func TestSettleGivesBackWhatWasNotUsed(t *testing.T) {
	for body, want := range map[string]string{``: "5", `,"cost":2`: "8", `,"cost":0`: "10", `,"cost":9`: "1", `,"costs":[3]`: "7"} {
		inBubble(t, func(t *testing.T, a *API) {
			token := tokenOf(t, post(a, "/v1/reserve", `{"key":"a","cost":5}`))
			checkRemaining(t, a, "default", "a", "5")
			ask := `{"token":"` + token + `"` + body + `}`
			if w := post(a, "/v1/settle", ask); w.Code != 200 || w.Body.String() != "{}\n" {
				t.Errorf("settle %s: got %d %s", body, w.Code, w.Body)
			}
			checkRemaining(t, a, "default", "a", want)
			if w := post(a, "/v1/settle", ask); w.Code != 404 || !strings.Contains(w.Body.String(), "token is unknown: it was settled") {
				t.Errorf("the second settle: got %d %s, want 404", w.Code, w.Body)
			}
			checkRemaining(t, a, "default", "a", want)
		}, slowly)
	}
}

// A token settles its own take, also in another process, so a window gets nothing of an earlier one. A bucket gets all of it.
func TestATokenThatIsSettledLateGivesNothingToAnotherWindow(t *testing.T) {
	for limit, want := range map[string]string{
		"fixed window 10/10s": "6", "sliding window 10/10s": "6", "sliding log 10/10s": "6", "rate gate 10/10s": "6", "cycle 10/10s": "6", "token bucket 10/10s": "10",
	} {
		inBubble(t, func(t *testing.T, a *API) {
			token := tokenOf(t, post(a, "/v1/reserve", `{"key":"a","cost":5}`))
			waiting := tokenOf(t, post(a, "/v1/reserve", `{"key":"a","cost":5,"patience":1}`))
			time.Sleep(15 * time.Second)
			post(a, "/v1/take", `{"key":"a","cost":4}`)
			for _, token := range []string{token, waiting} {
				if w := post(a, "/v1/settle", `{"token":"`+token+`","cost":0}`); w.Code != 200 {
					t.Errorf("%s: settle: got %d %s", limit, w.Code, w.Body)
				}
			}
			checkRemaining(t, a, "default", "a", want)
		}, "default="+limit)
	}
}

// Two daemons must not settle one token, so a settlement is refused while the engine is away, and can be tried again.
func TestASettlementDuringAnOutageCanBeTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := weir.NewMemory(weir.MemoryOptions{})
		var fails atomic.Bool
		guard, err := layer.Guard(weir.Kit.EngineOf(func(ctx context.Context, call weir.Call) (weir.Answer, error) {
			if fails.Load() {
				return weir.Answer{}, errors.New("connection refused")
			}
			return memory.Do(ctx, call)
		}, memory.Check), layer.GuardOptions{Logger: slog.New(slog.DiscardHandler), Peers: 1, Rules: map[string]layer.Policy{decide.SettledRule: layer.Deny, decide.HereRule: layer.Local}})
		if err != nil {
			t.Fatal(err)
		}
		defer guard.Close()
		a := newAPI(t, guard, "default=concurrency 2 lease 1m and fixed window 10/366d")
		token := tokenOf(t, post(a, "/v1/reserve", `{"key":"a","cost":2}`))
		fails.Store(true)
		for range 7 { // before and after the breaker opens
			if w := post(a, "/v1/settle", `{"token":"`+token+`","cost":1}`); w.Code != 503 || !strings.Contains(w.Body.String(), `"counted":"no"`) {
				t.Errorf("settle: got %d %s, want 503 that was not counted", w.Code, w.Body)
			}
		}
		fails.Store(false)
		for range 4 { // the probes that close the breaker
			time.Sleep(300 * time.Millisecond)
			post(a, "/v1/peek", `{"key":"b"}`)
		}
		for _, want := range []int{200, 404} {
			if w := post(a, "/v1/settle", `{"token":"`+token+`","cost":1}`); w.Code != want || guard.Stats().Away {
				t.Errorf("settle after the outage: got %d %s, want %d", w.Code, w.Body, want)
			}
		}
		for limit, want := range map[string]int64{"concurrency 2 lease 1m": 2, "fixed window 10/366d": 9} {
			rule, err := weir.ParseRule("default=" + limit)
			if err != nil {
				t.Fatal(err)
			}
			if d, err := memory.Peek(t.Context(), rule.For("a", 0)); err != nil || d.Remaining != want {
				t.Errorf("%s: got %+v and %v, want %d units left", limit, d, err, want)
			}
		}
	})
}

func TestSettleTakesACostForEachRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		token := tokenOf(t, post(a, "/v1/reserve", `{"requests":[{"key":"a","cost":5},{"key":"b","cost":5}]}`))
		for costs, n := range map[string]int{"[1]": 1, "[1,2,3]": 3} {
			want := fmt.Sprintf(`"detail":"costs has length %d, not 2: one for each request","field":"costs"`, n)
			if w := post(a, "/v1/settle", `{"token":"`+token+`","costs":`+costs+`}`); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("costs %s of two requests: got %d %s, want %s", costs, w.Code, w.Body, want)
			}
		}
		if w := post(a, "/v1/settle", `{"token":"`+token+`","costs":[1,6]}`); w.Code != 200 {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		checkRemaining(t, a, "default", "a", "9")
		checkRemaining(t, a, "default", "b", "4")
	}, slowly)
}

const twoJobs = "jobs=concurrency 2 lease 10s and token bucket 1000/366d"

func TestASlotIsHeldUntilItsTokenIsSettled(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		const ask = `{"rule":"jobs","key":"a","patience":60}`
		first := tokenOf(t, post(a, "/v1/reserve", ask))
		second := tokenOf(t, post(a, "/v1/reserve", ask))
		third := send(a, "/v1/reserve", ask)
		time.Sleep(3 * time.Second)
		if w := post(a, "/v1/settle", `{"token":"`+second+`"}`); w.Code != 200 {
			t.Fatalf("settle: %d %s", w.Code, w.Body)
		}
		w := <-third.answer
		if third.took != 3*time.Second {
			t.Errorf("the third caller waited %v, want the 3s until a slot was released", third.took)
		}
		if !strings.Contains(w.Body.String(), `"lease":10,"token":`) {
			t.Errorf("got %s, want the lease of the slot", w.Body)
		}
		for _, token := range []string{first, tokenOf(t, w)} {
			post(a, "/v1/settle", `{"token":"`+token+`"}`)
		}
		checkRemaining(t, a, "jobs", "a", "2")
		if got := post(a, "/v1/take", `{"rule":"jobs","key":"a","cost":2}`).Body.String(); !strings.HasPrefix(got, `{"allowed":true`) {
			t.Errorf("after all tokens are settled: %s", got)
		}
	}, twoJobs)
}

func TestEverySettlementReleasesEverySlot(t *testing.T) {
	for body, want := range map[string]string{``: "5", `,"cost":2`: "8", `,"cost":5`: "5", `,"cost":0`: "10", `,"costs":[1,4]`: "6", `,"costs":[2,9]`: "1"} {
		inBubble(t, func(t *testing.T, a *API) {
			token := tokenOf(t, post(a, "/v1/reserve", `{"requests":[{"rule":"slots","key":"a"},{"key":"a","cost":5}]}`))
			checkRemaining(t, a, "slots", "a", "1")
			if w := post(a, "/v1/settle", `{"token":"`+token+`"`+body+`}`); w.Code != 200 {
				t.Errorf("settle %s: got %d %s", body, w.Code, w.Body)
			}
			checkRemaining(t, a, "slots", "a", "2")
			checkRemaining(t, a, "default", "a", want)
		}, slowly, "slots=concurrency 2 lease 10s")
	}
}

// A client that dies holds its slot until its lease ends, and no longer. The units of the rate stay spent.
func TestASlotEndsWithItsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		token := tokenOf(t, post(a, "/v1/reserve", `{"rule":"jobs","key":"a","cost":2}`))
		next := send(a, "/v1/reserve", `{"rule":"jobs","key":"a","patience":60}`)
		<-next.answer
		if next.took != 10*time.Second {
			t.Errorf("the next caller waited %v, want the lease of 10s", next.took)
		}
		for _, path := range []string{"/v1/settle", "/v1/renew"} {
			if w := post(a, path, `{"token":"`+token+`"}`); w.Code != 404 || !strings.Contains(w.Body.String(), `"field":"token"`) {
				t.Errorf("%s after the lease: got %d %s, want 404", path, w.Code, w.Body)
			}
		}
	}, twoJobs)
}

func TestRenewHoldsASlotBeyondItsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		token := tokenOf(t, post(a, "/v1/reserve", `{"rule":"jobs","key":"a","cost":2}`))
		next := send(a, "/v1/reserve", `{"rule":"jobs","key":"a","patience":60}`)
		for range 3 {
			time.Sleep(6 * time.Second)
			w := post(a, "/v1/renew", `{"token":"`+token+`"}`)
			if w.Code != 200 || !strings.HasPrefix(w.Body.String(), `{"lease":10,"token":"`) {
				t.Fatalf("renew: got %d %s", w.Code, w.Body)
			}
			token = tokenOf(t, w)
			checkRemaining(t, a, "jobs", "a", "0")
		}
		<-next.answer
		if next.took < 28*time.Second || next.took > 29*time.Second {
			t.Errorf("the next caller waited %v, want 28s: three renewals after 6s each, and the lease of 10s; a second for the last question", next.took)
		}
		if got := post(a, "/v1/peek", `{"rule":"rate","key":"a"}`).Body.String(); !strings.Contains(got, `"remaining":`) {
			t.Error(got)
		}
	}, twoJobs, "rate=1/s")
}

func TestATokenEndsWithItsLife(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		slots := tokenOf(t, post(a, "/v1/reserve", `{"rule":"jobs","key":"a","cost":2}`))
		units := tokenOf(t, post(a, "/v1/reserve", `{"key":"a","cost":4}`))
		for _, c := range []struct {
			after time.Duration
			token string
		}{{10 * time.Second, slots}, {50 * time.Second, units}} {
			time.Sleep(c.after - time.Millisecond)
			renewed := tokenOf(t, post(a, "/v1/renew", `{"token":"`+c.token+`"}`))
			time.Sleep(time.Millisecond)
			for _, path := range []string{"/v1/renew", "/v1/settle"} {
				if w := post(a, path, `{"token":"`+c.token+`","cost":0}`); w.Code == 200 {
					t.Errorf("%s at the end: got %d %s, want 404", path, w.Code, w.Body)
				}
			}
			if w := post(a, "/v1/settle", `{"token":"`+renewed+`"}`); w.Code != 200 {
				t.Errorf("the renewed token: got %d %s", w.Code, w.Body)
			}
		}
		checkRemaining(t, a, "default", "a", "6") // the units of forgotten reservations stay spent
	}, slowly, twoJobs)
}

// secretly returns an API on an engine whose daemons share a secret.
func secretly(t *testing.T, engine weir.Engine, secret string, rules ...string) *API {
	return newAPIWith(t, decide.Options{Engine: layertest.Around(engine), Secret: func(context.Context) ([]byte, error) { return []byte(secret), nil }}, rules...)
}

func TestEveryDaemonOnAnEngineHonoursATokenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := weir.NewMemory(weir.MemoryOptions{})
		daemon := func(secret string) *API { return secretly(t, engine, secret, slowly, twoJobs) }
		one, other, stranger := daemon("ours"), daemon("ours"), daemon("theirs")
		const ask = `{"requests":[{"rule":"jobs","key":"a","cost":2},{"key":"u","cost":5}]}`
		token := tokenOf(t, post(one, "/v1/reserve", ask))
		for range 3 { // longer than its first life
			time.Sleep(6 * time.Second)
			token = tokenOf(t, post(other, "/v1/renew", `{"token":"`+token+`"}`))
			checkRemaining(t, one, "jobs", "a", "0")
		}
		for i := range token {
			altered := []byte(token)
			if altered[i] = 'A'; token[i] == 'A' {
				altered[i] = 'B'
			}
			if w := post(other, "/v1/settle", `{"token":"`+string(altered)+`","cost":0}`); w.Code != 404 {
				t.Errorf("the token with another letter %d: got %d %s", i, w.Code, w.Body)
			}
		}
		if w := post(stranger, "/v1/settle", `{"token":"`+token+`","cost":0}`); w.Code != 404 {
			t.Errorf("at a daemon with another secret: got %d %s", w.Code, w.Body)
		}
		checkRemaining(t, one, "default", "u", "5")
		done := make(chan int, 8)
		for i := range 8 {
			go func() {
				done <- post([]*API{one, other}[i%2], "/v1/settle", `{"token":"`+token+`","costs":[2,1]}`).Code
			}()
		}
		settled := 0
		for range 8 {
			if code := <-done; code == 200 {
				settled++
			} else if code != 404 {
				t.Errorf("a settlement: %d", code)
			}
		}
		if settled != 1 {
			t.Errorf("%d of 8 settlements succeeded, want 1", settled)
		}
		checkRemaining(t, other, "default", "u", "9")
		checkRemaining(t, other, "jobs", "a", "2")
		if w := post(one, "/v1/renew", `{"token":"`+token+`"}`); w.Code != 404 || !strings.Contains(w.Body.String(), "token is unknown") {
			t.Errorf("renew after the settlement: got %d %s", w.Code, w.Body)
		}
	})
}

func TestATokenOutlivesItsRule(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		token := tokenOf(t, post(a, "/v1/reserve", `{"requests":[{"rule":"jobs","key":"a"},{"key":"a","cost":4}]}`))
		named, _ := a.desk.Rules()
		a.desk.Use(named[:1], nil) // without jobs
		if w := post(a, "/v1/settle", `{"token":"`+token+`","costs":[1,1]}`); w.Code != 200 {
			t.Errorf("settle after the reload: got %d %s", w.Code, w.Body)
		}
		a.desk.Use(named, nil)
		checkRemaining(t, a, "jobs", "a", "2")
		checkRemaining(t, a, "default", "a", "9")
	}, slowly, twoJobs)
}

// A settlement that was not counted can be tried again, and one that may have been cannot.
func TestASettlementThatFailedIsTriedAgainIfItWasNotCounted(t *testing.T) {
	for counted, want := range map[weir.Counted]int{weir.CountedNo: 200, weir.CountedUnknown: 404} {
		synctest.Test(t, func(t *testing.T) {
			fails := true
			a := newAPI(t, weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
				if call.Op == weir.OpReturn && call.Requests[0].Rule.Name() == "default" && fails {
					return weir.Answer{}, away{counted}
				}
				return next(ctx, call)
			}), slowly)
			token := tokenOf(t, post(a, "/v1/reserve", `{"key":"a","cost":5}`))
			ask := `{"token":"` + token + `","cost":2}`
			if w := post(a, "/v1/settle", ask); w.Code != 503 {
				t.Errorf("%v: got %d %s, want 503", counted, w.Code, w.Body)
			}
			fails = false
			if w := post(a, "/v1/settle", ask); w.Code != want {
				t.Errorf("%v: again: got %d %s, want %d", counted, w.Code, w.Body, want)
			}
		})
	}
}

type away struct{ counted weir.Counted }

func (u away) Error() string            { return "away" }
func (u away) WasCounted() weir.Counted { return u.counted }

func TestTokensCannotBeGuessed(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		seen := map[string]bool{}
		for range 1000 {
			seen[tokenOf(t, post(a, "/v1/reserve", `{"key":"a","cost":0}`))] = true
		}
		if len(seen) != 1000 {
			t.Errorf("%d different tokens of 1000", len(seen))
		}
	}, slowly)
}

// askFor returns a body of several requests with long keys.
func askFor(requests, bytes int, more string) string {
	var all []string
	for i := range requests {
		all = append(all, fmt.Sprintf(`{"key":"%0*d","cost":0}`, bytes, i))
	}
	return `{"requests":[` + strings.Join(all, ",") + `]` + more + `}`
}

func TestTheLargestReservationIsSettled(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		large := tokenOf(t, post(a, "/v1/reserve", askFor(128, 4096, "")))
		if w := post(a, "/v1/settle", `{"token":"`+large+`"}`); w.Code != 200 {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	}, slowly)
}

func TestARenewalAfterAResetSaysThatTheSlotsAreLost(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		const ask = `{"requests":[{"rule":"jobs","key":"a","cost":2},{"key":"u","cost":5}]}`
		first, second := tokenOf(t, post(a, "/v1/reserve", ask)), tokenOf(t, post(a, "/v1/reserve", `{"rule":"jobs","key":"b"}`))
		post(a, "/v1/reset", `{"rule":"jobs","key":"a"}`)
		others := tokenOf(t, post(a, "/v1/reserve", `{"rule":"jobs","key":"a","cost":2}`))
		if w := post(a, "/v1/renew", `{"token":"`+first+`"}`); w.Code != 404 || !strings.Contains(w.Body.String(), "the slots of token were lost") {
			t.Errorf("renew after the reset: got %d %s, want 404", w.Code, w.Body)
		}
		for _, token := range []string{second, others} {
			if w := post(a, "/v1/renew", `{"token":"`+token+`"}`); w.Code != 200 {
				t.Errorf("renew of slots that are held: got %d %s", w.Code, w.Body)
			}
		}
	}, slowly, twoJobs)
}

func TestTheSameSlotsTwiceInOneReservationCountAsOneRequest(t *testing.T) {
	for _, patience := range []string{"0", "30"} {
		inBubble(t, func(t *testing.T, a *API) {
			token := tokenOf(t, post(a, "/v1/reserve", `{"requests":[{"rule":"jobs","key":"a"},{"rule":"jobs","key":"a"}],"patience":`+patience+`}`))
			checkRemaining(t, a, "jobs", "a", "0")
			if w := post(a, "/v1/renew", `{"token":"`+token+`"}`); w.Code != 200 {
				t.Errorf("renew: got %d %s", w.Code, w.Body)
			}
			checkRemaining(t, a, "jobs", "a", "0")
			if w := post(a, "/v1/settle", `{"token":"`+token+`","costs":[1,1]}`); w.Code != 200 {
				t.Errorf("settle: got %d %s", w.Code, w.Body)
			}
			checkRemaining(t, a, "jobs", "a", "2")
			if w := post(a, "/v1/wait", `{"requests":[{"key":"a"},{"key":"a"}],"patience":`+patience+`}`); w.Code != 200 {
				t.Errorf("wait for the same twice: got %d %s", w.Code, w.Body)
			}
			checkRemaining(t, a, "default", "a", "8")
		}, slowly, twoJobs)
	}
}

func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// An engine that has no room for the marks of settlements does not make a token unknown that nobody has settled. Slots are
// released all the same; a settlement of units that cannot be remembered is refused, and says so.
func TestSettlementsWithoutRoomForTheirMarksAreNotRefusedAsUnknown(t *testing.T) {
	for _, c := range []struct {
		rule    string
		refused bool // some are, for lack of room
	}{{"default=concurrency 3 lease 1m", false}, {"default=token bucket 10/366d", true}} {
		synctest.Test(t, func(t *testing.T) {
			a := newAPI(t, weir.NewMemory(weir.MemoryOptions{MaxKeys: 64}), c.rule)
			refused := 0
			for i := range 300 {
				reserved := post(a, "/v1/reserve", fmt.Sprintf(`{"key":"%d","cost":1}`, i%50))
				if !strings.Contains(reserved.Body.String(), `"token"`) {
					continue // the key has used its units up
				}
				renewed := post(a, "/v1/renew", `{"token":"`+tokenOf(t, reserved)+`"}`)
				if renewed.Code != 200 && !(c.refused && renewed.Code == 503) {
					t.Fatalf("renewal %d: got %d %s", i, renewed.Code, renewed.Body)
				}
				switch w := post(a, "/v1/settle", `{"token":"`+tokenOf(t, reserved)+`","cost":0}`); {
				case w.Code == 503 && c.refused && strings.Contains(w.Body.String(), "no room"):
					refused++
				case w.Code != 200:
					t.Fatalf("settlement %d: got %d %s", i, w.Code, w.Body)
				}
			}
			if c.refused != (refused > 0) {
				t.Errorf("%s: %d settlements found no room, want some: %v", c.rule, refused, c.refused)
			}
		})
	}
}
