package api

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
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
		synctest.Wait()
		if got := a.waits.tokens.count(); got != 1 {
			t.Errorf("%d tokens are open, want that of the next caller", got)
		}
	}, twoJobs)
}

func TestRenewHoldsASlotBeyondItsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		token := tokenOf(t, post(a, "/v1/reserve", `{"rule":"jobs","key":"a","cost":2}`))
		next := send(a, "/v1/reserve", `{"rule":"jobs","key":"a","patience":60}`)
		for range 3 {
			time.Sleep(6 * time.Second)
			if w := post(a, "/v1/renew", `{"token":"`+token+`"}`); w.Code != 200 || w.Body.String() != `{"lease":10}`+"\n" {
				t.Fatalf("renew: got %d %s", w.Code, w.Body)
			}
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

// The renewal comes too late for the engine to keep the slot for certain.
func TestARenewalAtTheEndOfTheLeaseIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		token := tokenOf(t, post(a, "/v1/reserve", `{"rule":"jobs","key":"a","cost":2}`))
		time.Sleep(9900 * time.Millisecond)
		if w := post(a, "/v1/renew", `{"token":"`+token+`"}`); w.Code != 404 {
			t.Errorf("100 ms before the end: got %d %s, want 404", w.Code, w.Body)
		}
	}, twoJobs)
}

func TestOpenReservationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, weir.NewMemory(weir.MemoryOptions{}), slowly)
		a.waits.tokens.places.most = 3
		var last string
		for range 3 {
			last = tokenOf(t, post(a, "/v1/reserve", `{"key":"a"}`))
		}
		const full = "too many reservations are open, or they are too large, and nothing was taken; settle some, or raise weir serve --max-tokens"
		if w := post(a, "/v1/reserve", `{"key":"a"}`); w.Code != 503 || !strings.Contains(w.Body.String(), full) {
			t.Errorf("the fourth of three: got %d %s", w.Code, w.Body)
		}
		checkRemaining(t, a, "default", "a", "7")
		post(a, "/v1/settle", `{"token":"`+last+`"}`)
		if w := post(a, "/v1/reserve", `{"key":"a","cost":99}`); w.Code != 200 || strings.Contains(w.Body.String(), "token") {
			t.Errorf("a refused reservation: %s, want no token", w.Body)
		}
		tokenOf(t, post(a, "/v1/reserve", `{"key":"a"}`))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := a.waits.tokens.count(); got != 0 {
			t.Errorf("%d tokens are open after their minute, want none", got)
		}
		checkRemaining(t, a, "default", "a", "6") // the units of forgotten reservations stay spent
	})
}

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

// All open reservations hold at most 1 KiB of requests for each of --max-tokens. A larger one takes the place of several.
func TestTheMemoryOfOpenReservationsIsBounded(t *testing.T) {
	for _, c := range []struct{ requests, bytes, want int }{{1, 100, 4096}, {2, 4096, 455}, {128, 20, 117}, {128, 4096, 7}} {
		synctest.Test(t, func(t *testing.T) {
			a := newAPI(t, weir.NewMemory(weir.MemoryOptions{}), slowly)
			a.waits.tokens.places.most = 4096
			ask, opened, last := askFor(c.requests, c.bytes, ""), 0, ""
			before := heapInUse()
			for {
				w := post(a, "/v1/reserve", ask)
				if w.Code == 503 {
					break
				}
				last = tokenOf(t, w)
				opened++
			}
			if used := heapInUse() - before; opened != c.want || used > 4096*1024*5/4 {
				t.Errorf("%d requests of %d bytes: %d open reservations hold %d KiB, want %d in about 4 MiB", c.requests, c.bytes, opened, used>>10, c.want)
			}
			post(a, "/v1/settle", `{"token":"`+last+`"}`)
			tokenOf(t, post(a, "/v1/reserve", ask))
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if left := a.waits.tokens.places.taken; left != 0 {
				t.Errorf("%d places are taken after all reservations have ended", left)
			}
		})
	}
}

func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// The largest reservation is not refused for good, however few the tokens are.
func TestTheLargestReservationHasPlaceAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		a.waits.tokens.places.most = 2
		large := tokenOf(t, post(a, "/v1/reserve", askFor(128, 4096, "")))
		if w := post(a, "/v1/reserve", `{"key":"a"}`); w.Code != 503 {
			t.Errorf("beside it: got %d %s, want 503", w.Code, w.Body)
		}
		post(a, "/v1/settle", `{"token":"`+large+`"}`)
		tokenOf(t, post(a, "/v1/reserve", `{"key":"a"}`))
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
