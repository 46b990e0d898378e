package api

import (
	"strings"
	"testing"

	"github.com/weirflow/weir/httplimit"
)

const pooledFile = `attributes: [tenant]
rules:
  - {name: floor, match: {path: /v1*}, key: tenant, limit: fixed window 2/h, otherwise: pool, message: Buy more.}
  - {name: pool, match: otherwise, limit: fixed window 3/h}
  - {name: all, match: {path: /v1/both}, limit: fixed window 4/h}
  - {name: jobs, match: {path: /v1/jobs}, key: tenant, limit: concurrency 1 lease 1m, otherwise: more}
  - {name: more, match: otherwise, limit: concurrency 1 lease 5m}
  - {name: open, match: {path: /open}, key: tenant, limit: fixed window 1/h, otherwise: slots}
  - {name: slots, match: otherwise, limit: concurrency 1 lease 5m}
`

// Every way in tells who paid, and describes that rule.
func TestAnAnswerDescribesTheRuleThatPaid(t *testing.T) {
	a := newConfigured(t, pooledFile)
	const byFloor, byPool = `"rule":"floor","key":"a","limit":2,`, `"rule":"pool","key":"","limit":3,`
	for i, c := range []struct{ path, body, want, no string }{
		{"take", `{"rule":"floor","key":"a","cost":2}`, `{"allowed":true,` + byFloor + `"remaining":0,`, "paid_by"},
		{"peek", `{"rule":"floor","key":"a"}`, `{"allowed":true,` + byPool + `"remaining":3,"retry_after":0,"reset_after":0,"delay":0,"paid_by":"pool"}`, ""},
		{"take", `{"rule":"floor","key":"a"}`, `{"allowed":true,` + byPool + `"remaining":2,"retry_after":0,"reset_after":3600,"delay":0,"paid_by":"pool"}`, ""},
		{"take", `{"attributes":{"path":"/v1/x","tenant":"a"}}`, byPool + `"remaining":1,"retry_after":0,"reset_after":3600,"delay":0,"paid_by":"pool"}`, ""},
		{"take", `{"decisions":[{"rule":"floor","key":"b","cost":2},{"rule":"floor","key":"b"},{"rule":"floor","key":"a"}]}`,
			`{"decisions":[{"allowed":true,"rule":"floor","key":"b","limit":2,"remaining":0,"retry_after":0,"reset_after":3600,"delay":0},` +
				`{"allowed":true,` + byPool + `"remaining":0,"retry_after":0,"reset_after":3600,"delay":0,"paid_by":"pool"},` +
				`{"allowed":false,` + byFloor + `"remaining":0,"retry_after":3600,"reset_after":3600,"delay":0,"refused_by":0,"cause":"count","message":"Buy more."}]}`, ""},
		{"take", `{"rule":"floor","key":"a"}`, `{"allowed":false,` + byFloor, "paid_by"},
		{"return", `{"rule":"floor","key":"a","cost":1}`, `{"allowed":true,` + byFloor + `"remaining":1,`, "paid_by"}, // goes to the floor
		{"record", `{"rule":"floor","key":"a","cost":1}`, byFloor + `"remaining":0,`, "paid_by"},
		{"record", `{"attributes":{"path":"/v1/x","tenant":"c"}}`, `"rule":"floor","key":"c","limit":2,"remaining":1,`, "paid_by"},
		{"reset", `{"rule":"floor","key":"a"}`, `{}`, ""},
		{"peek", `{"rule":"floor","key":"a"}`, `{"allowed":true,` + byFloor + `"remaining":2,`, "paid_by"},
		{"take", `{"rule":"pool","key":""}`, `"detail":"rule is \"pool\", and it is only asked in place of rules that name it in otherwise: name one of those"`, ""},
		{"reserve", `{"rule":"jobs","key":"a"}`, `"rule":"jobs","key":"a","limit":1,"remaining":0,"retry_after":0,"reset_after":60,"delay":0,"lease":60,"token":`, "paid_by"},
		{"reserve", `{"rule":"jobs","key":"a"}`, `"rule":"more","key":"","limit":1,"remaining":0,"retry_after":0,"reset_after":300,"delay":0,"lease":300,"token":`, ""},
		{"wait", `{"rule":"open","key":"a"}`, `"detail":"rule holds slots`, ""}, // a pool that a wait could not release
	} {
		body := post(a, "/v1/"+c.path, c.body).Body.String()
		if !strings.Contains(body, c.want) || c.no != "" && strings.Contains(body, c.no) {
			t.Errorf("%d: %s %s\n got %s\nwant %s without %q", i, c.path, c.body, body, c.want, c.no)
		}
	}
}

// The rule with the least left is described, and who paid is told in any case.
func TestPaidByIsToldBesideARuleWithLessLeft(t *testing.T) {
	a := newConfigured(t, pooledFile)
	for i, want := range []string{`"rule":"floor","key":"t","limit":2,"remaining":1,`, `"rule":"floor","key":"t","limit":2,"remaining":0,`,
		`"rule":"all","key":"","limit":4,"remaining":1,"retry_after":0,"reset_after":3600,"delay":0,"paid_by":"pool"}`} {
		if body := post(a, "/v1/take", `{"attributes":{"path":"/v1/both","tenant":"t"}}`).Body.String(); !strings.Contains(body, want) {
			t.Errorf("take %d: got %s, want %s", i, body, want)
		}
	}
}

func TestACheckShowsTheRuleThatPaid(t *testing.T) {
	a := newConfigured(t, strings.NewReplacer("key: tenant", "key: client").Replace(pooledFile))
	gateways, err := httplimit.NewClient(httplimit.ClientOptions{Trusted: []string{"10.0.0.0/8"}})
	if err != nil {
		t.Fatal(err)
	}
	a.Check.Gateways = gateways
	for i, want := range []struct {
		status       int
		policy, paid string
	}{{204, `"floor";r=1`, ""}, {204, `"floor";r=0`, ""}, {204, `"pool";r=2`, "pool"}, {204, `"pool";r=1`, "pool"}, {204, `"pool";r=0`, "pool"}, {429, `"floor";r=0`, ""}} {
		status, header, body := forward(a, "GET", "/v1/x", "h", "192.0.2.1")
		if status != want.status || !strings.HasPrefix(header.Get("RateLimit"), want.policy) || header.Get("Weir-Paid-By") != want.paid {
			t.Errorf("check %d: got %d, RateLimit %s and Weir-Paid-By %q, want %+v; %s", i, status, header.Get("RateLimit"), header.Get("Weir-Paid-By"), want, body)
		}
		if policy := header.Get("RateLimit-Policy"); status == 204 && strings.Contains(policy, "pool") != (want.paid != "") {
			t.Errorf("check %d: RateLimit-Policy is %s", i, policy)
		}
	}
	if status, _, body := forward(a, "GET", "/open", "h", "192.0.2.1"); status != 400 || !strings.Contains(body, `rule is \"slots\", which holds slots`) {
		t.Errorf("a check whose pool holds slots got %d %s", status, body)
	}
}
