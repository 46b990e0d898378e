package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/internal/layertest"
)

func TestStatsTellDecisionsAndHeavyKeys(t *testing.T) {
	f := newFixture(t, usual, "login=token bucket 1/m burst 2")
	for range 3 {
		post(f, "/v1/take", `{"rule":"login","key":"<alice>"}`)
	}
	post(f, "/v1/take", `{"key":"bob"}`)
	post(f, "/v1/peek", `{"key":"carol"}`) // not a decision
	for path, want := range map[string]string{
		"/v1/stats": `"rules":[{"rule":"default","decisions":1,"refusals":0,"overflow":0},{"rule":"login","decisions":3,"refusals":1,"overflow":0}],` +
			`"busiest":[{"rule":"login","key":"\u003calice\u003e","count":3,"overcount":0},{"rule":"default","key":"bob","count":1,"overcount":0}],` +
			`"refused":[{"rule":"login","key":"\u003calice\u003e","count":1,"overcount":0}],"waiting":{`,
		"/v1/stats?top=1": `"busiest":[{"rule":"login","key":"\u003calice\u003e","count":3,"overcount":0}],"refused":[{"rule":"login","key":"\u003calice\u003e","count":1,"overcount":0}],"waiting":{`,
		"/v1/stats?top=0": `"busiest":[],"refused":[],"waiting":{`,
	} {
		w := get(f, path)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: got %d %s %swant …%s…", path, w.Code, w.Header().Get("Content-Type"), w.Body, want)
		}
	}
}

// Keys are personal data: without the scope admin for every rule, the statistics are rules and sums, and a request for keys is
// refused. A scope for some rules is not enough for sums of all.
func TestStatsHaveNoKeysForCallersWithoutAdmin(t *testing.T) {
	f := newFixture(t, usual)
	post(f, "/v1/take", `{"key":"alice"}`)
	for scopes, want := range map[string]struct {
		codes [3]int // without top, with top=0 and with top=1
		keys  bool
	}{
		"metrics":              {[3]int{200, 200, 403}, false},
		"metrics take refund":  {[3]int{200, 200, 403}, false},
		"metrics admin:login":  {[3]int{200, 200, 403}, false},
		"metrics admin":        {[3]int{200, 200, 200}, true},
		"metrics:login":        {[3]int{403, 403, 403}, false},
		"metrics:login admin":  {[3]int{403, 403, 403}, false},
		"admin take dynamic":   {[3]int{403, 403, 403}, false},
		"metrics:login refund": {[3]int{403, 403, 403}, false},
	} {
		identities, err := auth.Parse("shop sha256:" + strings.Repeat("ab", 32) + " " + scopes)
		if err != nil {
			t.Fatal(err)
		}
		f.Who = func(*http.Request) *auth.Identity { return identities[0] }
		for i, query := range []string{"", "?top=0", "?top=1"} {
			w := get(f, "/v1/stats"+query)
			if w.Code != want.codes[i] {
				t.Errorf("%s, %q: got %d %s, want %d", scopes, query, w.Code, w.Body, want.codes[i])
			}
			lists := strings.Contains(w.Body.String(), `"busiest":`) && strings.Contains(w.Body.String(), `"refused":[`)
			named := strings.Contains(w.Body.String(), "alice")
			if lists != want.keys || named != (want.keys && i != 1) {
				t.Errorf("%s, %q: got %s, want keys: %v", scopes, query, w.Body, want.keys)
			}
		}
	}
}

func TestStatsAreThoseOfTheEngine(t *testing.T) {
	engine := weir.NewMemory(weir.MemoryOptions{MaxKeys: 1})
	api := newAPI(t, layertest.Put(engine, 1), "default=token bucket 1/366d")
	for i := range 1000 {
		post(api, "/v1/take", fmt.Sprintf(`{"key":"%d"}`, i))
	}
	s := engine.Stats()
	if s.Keys == 0 || s.Shared == 0 || s.Bytes == 0 || s.Overflow == 0 {
		t.Fatalf("the engine tells %+v, and nothing of it should be 0 but what was evicted", s)
	}
	want := fmt.Sprintf(`{"keys":%d,"shared":%d,"max_keys":1,"bytes":%d,"evicted":%d,"overflow":%d,"rules":[{"rule":"default","decisions":1000,"refusals":%d,"overflow":%d}],`,
		s.Keys, s.Shared, s.Bytes, s.Evicted, s.Overflow, s.Rules[0].Refusals, s.Rules[0].Overflow)
	if got := get(api, "/v1/stats").Body.String(); !strings.HasPrefix(got, want) {
		t.Errorf("got %swant %s…", got, want)
	}
}

func TestStatsThatCannotBeGivenSayWhy(t *testing.T) {
	memory := newFixture(t, usual)
	const bad = http.StatusBadRequest
	for _, test := range []struct {
		api   http.Handler
		query string
		want  fault
	}{
		{memory, "?top=129", fault{status: bad, field: "top", detail: `top is "129", not a whole number from 0 to 128`}},
		{memory, "?top=-1", fault{status: bad, field: "top", detail: `top is "-1", not a whole number from 0 to 128`}},
		{memory, "?top=", fault{status: bad, field: "top", detail: `top is "", not a whole number from 0 to 128`}},
		{memory, "?top=1e1", fault{status: bad, field: "top", detail: `top is "1e1", not a whole number from 0 to 128`}},
		{memory, "?top=1&top=2", fault{status: bad, field: "top", detail: `top occurs twice`}},
		{memory, "?n=1", fault{status: bad, field: "query", detail: `query has the field "n", not top`}},
		{memory, "?top=%zz", fault{status: bad, field: "query", detail: `query is not URL-encoded`}},
	} {
		checkProblem(t, "GET /v1/stats"+test.query, get(test.api, "/v1/stats"+test.query), test.want)
	}
}

func TestStatsOfAnotherEngineAreTheWaitingCallersAlone(t *testing.T) {
	got := get(newAPI(t, undecided(nil), usual), "/v1/stats").Body.String()
	if want := `{"waiting":{"callers":0,`; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s…", got, want)
	}
}
