package api

import (
	"fmt"
	"strings"
	"testing"
)

func newDynamic(t *testing.T, rules ...string) *fixture {
	f := newFixture(t, rules...)
	f.Dynamic = true
	return f
}

func TestARequestNamesItsLimit(t *testing.T) {
	f := newDynamic(t, usual, "api=fixed window 3/1m")
	for i, c := range []struct{ path, body, want string }{
		{"/v1/take", `{"rule":"tenant","key":"a","cost":4,"limit":"5/m"}`, `{"allowed":true,"rule":"tenant","key":"a","limit":5,"remaining":1,`},
		{"/v1/peek", `{"limit":"10/m","rule":"tenant","key":"a"}`, `"limit":10,"remaining":6,`}, // another rate keeps what was used
		{"/v1/take", `{"rule":"api","key":"a","limit":"fixed window 9/1m"}`, `"limit":9,"remaining":8,`},
		{"/v1/take", `{"rule":"api","key":"a"}`, `"limit":3,"remaining":1,`},
		{"/v1/take", `{"key":"a","limit":"7/s"}`, `"rule":"default","key":"a","limit":7,`},
		{"/v1/take", `{"requests":[{"rule":"api","key":"b"},{"rule":"tenant","key":"b","limit":"2/m"}]}`, `"rule":"tenant","key":"b","limit":2,"remaining":1,`},
		{"/v1/wait", `{"rule":"tenant","key":"c","limit":"2/m"}`, `"limit":2,"remaining":1,`},
		{"/v1/take", `{"rule":"tenant","key":"a","limit":"5/h"}`, `"detail":"limit is \"5/h\", but rule \"tenant\" has TokenBucket per 1m0s; a rule has one algorithm and period"`},
		{"/v1/take", `{"rule":"api","key":"a","limit":"9/m"}`, `but rule \"api\" has FixedWindow per 1m0s`},
		{"/v1/take", `{"rule":"tenant","key":"a","limit":"5/x"}`, `"field":"limit"`},
		{"/v1/take", `{"requests":[{"key":"b"},{"rule":"tenant","key":"b","limit":"5/x"}]}`, `"detail":"requests[1].limit `},
		{"/v1/take", `{"rule":"tenant","key":"a","limit":""}`, `limit has 0 bytes, want 1 to 256`},
		{"/v1/take", `{"rule":"tenant","key":"a","limit":"concurrency 5"}`, `which holds slots`},
		{"/v1/take", `{"rule":"a~b","key":"a","limit":"5/m"}`, `"field":"rule"`},
		{"/v1/take", `{"rule":"tenant","key":"a"}`, `rule is \"tenant\", and no rule has that name`},
	} {
		if got := post(f, c.path, c.body).Body.String(); !strings.Contains(got, c.want) {
			t.Errorf("%d: %s: got %s, want %s", i, c.body, got, c.want)
		}
	}
	for _, body := range []string{`{"key":"a","limit":"5/m"}`, `{"rule":"tenant","key":"a","limit":"5/m"}`, `{"requests":[{"rule":"tenant","key":"a","limit":"5/m"}]}`} {
		w := post(newFixture(t, usual), "/v1/take", body)
		if got := w.Body.String(); w.Code != 400 || !strings.Contains(got, "the daemon lets callers name no limits; weir serve --dynamic does") {
			t.Errorf("%s without --dynamic: got %d %s, want 400 that names --dynamic", body, w.Code, got)
		}
	}
}

func TestLimitsInRequestsBelongToAtMostAThousandOtherRules(t *testing.T) {
	f := newDynamic(t, usual)
	for i := range 1000 {
		if w := post(f, "/v1/take", fmt.Sprintf(`{"rule":"tenant%d","key":"a","limit":"5/m"}`, i)); w.Code != 200 {
			t.Fatalf("rule %d: %d %s", i, w.Code, w.Body)
		}
	}
	if got := post(f, "/v1/take", `{"rule":"tenant","key":"a","limit":"5/m"}`).Body.String(); !strings.Contains(got, "have named 1000 other rules with their limits already") {
		t.Errorf("one more: got %s, want an error", got)
	}
	if w := post(f, "/v1/peek", `{"rule":"tenant7","key":"a","limit":"6/m"}`); w.Code != 200 {
		t.Errorf("a known rule: got %d %s, want 200", w.Code, w.Body)
	}
}

func TestAProgramMayNameAnyNumberOfLimitsOfARule(t *testing.T) {
	f := newDynamic(t, usual)
	for i := range 3000 {
		if w := post(f, "/v1/take", fmt.Sprintf(`{"rule":"tenant","key":"a","limit":"%d/m"}`, i+1)); w.Code != 200 {
			t.Fatalf("limit %d: %d %s", i+1, w.Code, w.Body)
		}
	}
	if got := post(f, "/v1/peek", `{"rule":"tenant","key":"a","limit":"3000/m"}`).Body.String(); !strings.Contains(got, `"limit":3000,"remaining":0`) {
		t.Errorf("got %s, want the state that the takes by all limits left", got)
	}
}
