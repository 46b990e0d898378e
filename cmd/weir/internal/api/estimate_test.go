package api

import (
	"fmt"
	"strings"
	"testing"
)

const estimating = `rules:
  - {name: tokens, limit: fixed window 100000/366d, estimate: {quantile: p90, min: 10, max: 2000}}
  - {name: whole, limit: fixed window 5/366d, estimate: p50}
  - {name: plain, limit: fixed window 100/366d}
`

// reserved reserves and returns what the answer says is held, with its token.
func reserved(t *testing.T, a *API, body string) (held, token string) {
	t.Helper()
	w := post(a, "/v1/reserve", body)
	_, held, _ = strings.Cut(strings.TrimSuffix(w.Body.String(), "}\n"), `"held":`)
	return held, tokenOf(t, w)
}

func settled(t *testing.T, a *API, token, more string) {
	t.Helper()
	if w := post(a, "/v1/settle", `{"token":"`+token+`"`+more+`}`); w.Code != 200 {
		t.Fatalf("settle %s: %d %s", more, w.Code, w.Body)
	}
}

// A reservation holds the caller's estimate or the most, until enough is known of what was settled with a cost.
func TestAReservationHoldsWhatTheLastCallsOfItsKeyCost(t *testing.T) {
	a := newConfigured(t, estimating)
	wants := func(body, want string) (token string) {
		t.Helper()
		held, token := reserved(t, a, body)
		if held != want {
			t.Errorf("reserve %s holds %s, want %s", body, held, want)
		}
		return token
	}
	settled(t, a, wants(`{"rule":"tokens","key":"k"}`, "[2000]"), `,"cost":5000`)
	settled(t, a, wants(`{"rule":"tokens","key":"k","cost":300}`, "[300]"), "") // which says no cost
	settled(t, a, wants(`{"rule":"tokens","key":"k","cost":3}`, "[10]"), `,"cost":0`)
	settled(t, a, wants(`{"rule":"tokens","key":"k","cost":9999}`, "[2000]"), `,"costs":[41]`)
	for i := range 18 {
		settled(t, a, wants(`{"rule":"tokens","key":"k","cost":300}`, "[300]"), fmt.Sprintf(`,"cost":%d`, 100+i))
	}
	wants(`{"rule":"tokens","key":"k","cost":300}`, "[116]") // of 41, 100 to 117 and 5000
	wants(`{"rule":"tokens","key":"other","cost":300}`, "[300]")
	wants(`{"requests":[{"rule":"plain","key":"k"},{"rule":"tokens","key":"k"}]}`, "[1,116]")
	wants(`{"rule":"plain","key":"k"}`, "")
	wants(`{"rule":"whole","key":"k"}`, "[5]") // the capacity
	if w := post(a, "/v1/take", `{"rule":"tokens","key":"k2","cost":7}`); strings.Contains(w.Body.String(), "held") || !strings.Contains(w.Body.String(), `"remaining":99993`) {
		t.Errorf("a take is no reservation: %s", w.Body)
	}
}

// A reload keeps what was learnt, unless the estimate is another one.
func TestAReloadKeepsWhatAnEstimateHasLearnt(t *testing.T) {
	a := newConfigured(t, estimating)
	for range 20 {
		_, token := reserved(t, a, `{"rule":"tokens","key":"k","cost":50}`)
		settled(t, a, token, `,"cost":50`)
	}
	use := func(text string) {
		config := configured(t, text)
		a.desk.Use(config.Named(), config)
	}
	use(strings.Replace(estimating, "100000", "90000", 1))
	if held, _ := reserved(t, a, `{"rule":"tokens","key":"k"}`); held != "[50]" {
		t.Errorf("after a changed limit: %s, want [50]", held)
	}
	use(strings.Replace(estimating, "p90", "p80", 1))
	if held, _ := reserved(t, a, `{"rule":"tokens","key":"k"}`); held != "[2000]" {
		t.Errorf("after a changed estimate: %s, want [2000]", held)
	}
}
