package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirflow/weir/httplimit"
)

const gatewayFile = `rules:
  - {name: login, match: {method: POST, path: /login, host: www.example.com}, key: client, limit: 1/h, message: Too many attempts.}
  - {name: key, match: {path: "/api/*"}, key: header.x-api-key, missing: refuse, limit: 2/h}
  - {name: all, match: {path: "/api/*"}, key: client, limit: 100/h, candidate: 1/h}
  - {name: office, match: {client: 203.0.113.0/24}, unlimited: true}
  - {name: banned, match: {client: "2001:db8:1:2:3::/80"}, deny: true, message: Write to abuse@example.com.}
  - {name: slots, match: {path: /jobs}, limit: concurrency 5}
`

func newGatewayFiles(t *testing.T) *API {
	a := newConfigured(t, gatewayFile)
	gateways, err := httplimit.NewClient(httplimit.ClientOptions{Trusted: []string{"10.0.0.0/8"}})
	if err != nil {
		t.Fatal(err)
	}
	a.Check.Gateways = gateways
	return a
}

// forward asks as a gateway does for a request. Further fields are those of the client.
func forward(a *API, method, uri, host, client string, fields ...string) (status int, header http.Header, body string) {
	fields = append(fields, "X-Forwarded-Method", method, "X-Forwarded-Uri", uri, "X-Forwarded-Host", host, "X-Forwarded-For", client)
	w := ask(a, "GET", "/v1/check", gateway, fields...)
	return w.Code, w.Header(), w.Body.String()
}

func TestAGatewaysRequestIsDecidedByRulesInFiles(t *testing.T) {
	a := newGatewayFiles(t)
	for i, c := range []struct {
		method, uri, host, client string
		fields                    []string
		status                    int
		body                      string
	}{
		{"POST", "/login", "www.example.com", "192.0.2.1", nil, 204, ""},
		{"POST", "/.//%4Cogin;a=1/?x=1", "WWW.example.com.:443", "6.6.6.6, 192.0.2.1", nil, 429, `"detail":"Too many attempts."`},
		{"POST", "/login", "www.example.com", "192.0.2.2", nil, 204, ""},
		{"GET", "/login", "www.example.com", "192.0.2.1", nil, 204, ""},
		{"POST", "/login", "www.example.com", "203.0.113.9", []string{"Sec-Fetch-Site", "cross-site"}, 204, ""},
		{"GET", "/", "a", "2001:db8:1:2:3::4", nil, 403, `"detail":"Write to abuse@example.com."`},
		{"GET", "/", "a", "2001:db8:1:2:4::4", nil, 204, ""},
		{"GET", "/api/x", "a", "192.0.2.1", nil, 403, `"detail":"The request is refused."`},
		{"GET", "/api/x", "a", "192.0.2.1", []string{"X-Api-Key", "k"}, 204, ""},
		{"GET", "/api/x", "a", "192.0.2.1", []string{"X-Api-Key", "k", "X-Api-Key", "other"}, 400, `"field":"X-Api-Key"`},
		{"GET", "/api/x", "a", "192.0.2.1", []string{"Accept", "a", "Accept", "b", "X-Api-Key", "k"}, 204, ""},
		{"GET", "/api/x", "a", "192.0.2.1", []string{"X-Api-Key", "k"}, 429, `"violated-policies":["key"]`},
		{"GET", "/api/..;/jobs", "a", "192.0.2.1", nil, 403, ""},
		{"GET", "//a/api/x", "a", "192.0.2.1", []string{"X-Api-Key", "k"}, 403, ""},
		{"GET", "/jobs", "a", "192.0.2.1", nil, 400, `rule is \"slots\", which holds slots`},
		{"GET", "/api/x", "a", "192.0.2.1", []string{"X-Api-Key", "k", "X_Api-Key", "other"}, 400, `"field":"X_api-Key"`},
		{"GET", "/api/x", "a", "192.0.2.1", []string{"X_api_key", "k"}, 400, `has _ in its name; servers could read it as X-Api-Key`},
		{"GET", "/", "a@www.example.com", "192.0.2.1", nil, 400, `"field":"X-Forwarded-Host"`},
		{"GET", "/", "www.example.com/", "192.0.2.1", nil, 400, `"field":"X-Forwarded-Host"`},
		{"GET", "/", "www.example.com x", "192.0.2.1", nil, 400, `"field":"X-Forwarded-Host"`},
		{"GET", "/", "\uff57ww.example.com", "192.0.2.1", nil, 400, `"field":"X-Forwarded-Host"`},
		{"GET", "/", "a, www.example.com", "192.0.2.1", nil, 400, `"field":"X-Forwarded-Host"`},
		{"", "/", "a", "192.0.2.1", nil, 400, `"field":"X-Forwarded-Method"`},
		{"GET", "/", "a", "192.0.2.1", []string{"X-Forwarded-Uri", "/login"}, 400, `"field":"X-Forwarded-Uri"`},
	} {
		if status, _, body := forward(a, c.method, c.uri, c.host, c.client, c.fields...); status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("%d: %s %s: got %d %s, want %d %s", i, c.method, c.uri, status, body, c.status, c.body)
		}
	}
}

func TestAGatewaysRequestTakesFromAllRulesOrNone(t *testing.T) {
	a := newGatewayFiles(t)
	for range 4 { // the key admits two
		forward(a, "GET", "/api/x", "a", "192.0.2.1", "X-Api-Key", "k")
	}
	got := post(a, "/v1/peek", `{"rule":"all","key":"192.0.2.1"}`).Body.String()
	if !strings.Contains(got, `"remaining":98,`) {
		t.Errorf("after two admissions and two refusals by another rule: got %s, want 98 remaining", got)
	}
	_, header, _ := forward(a, "GET", "/api/x", "a", "192.0.2.1", "X-Api-Key", "other")
	if got := header.Get("RateLimit-Policy"); got != `"key";q=2;w=3600, "all";q=100;w=3600` {
		t.Errorf("RateLimit-Policy is %q, want that of both rules", got)
	}
}

// A check and a take of the same request count on the same key, also if the key is long, and if it is missing.
func TestAGatewaysRequestHasTheKeyOfATake(t *testing.T) {
	a := newConfigured(t, `rules: [{name: r, match: any, key: [header.x, path], limit: 100/h}]`)
	a.Check = newGatewayFiles(t).Check
	for i, value := range []string{"k", strings.Repeat("k", 300), "a|b", ""} {
		forward(a, "GET", "/P", "a", "192.0.2.1", "X", value)
		got := post(a, "/v1/take", `{"attributes":{"header.x":"`+value+`","path":"/p"}}`).Body.String()
		if !strings.Contains(got, `"remaining":98,`) {
			t.Errorf("%d: after a check: got %s, want 98 remaining", i, got)
		}
	}
}

// Some gateways append the query of the client to that of the check.
func TestAClientsQueryDoesNotReachTheCheck(t *testing.T) {
	a := newGatewayFiles(t)
	for i, query := range []string{"?rule=all&key=x", "?cost=0", "?x=%zz"} {
		fields := []string{"X-Forwarded-Method", "POST", "X-Forwarded-Uri", "/login" + query, "X-Forwarded-Host", "www.example.com", "X-Forwarded-For", "192.0.2.1"}
		if w := ask(a, "GET", "/v1/check"+query, gateway, fields...); w.Code != []int{204, 429, 429}[i] {
			t.Errorf("%s: got %d %s", query, w.Code, w.Body)
		}
	}
}

func TestStrangersMayNotCheckByRulesInFiles(t *testing.T) {
	if w := ask(newGatewayFiles(t), "GET", "/v1/check", "192.0.2.9:1", "X-Forwarded-Uri", "/"); w.Code != 400 || !strings.Contains(w.Body.String(), `"field":"peer"`) {
		t.Errorf("a stranger: got %d %s, want 400 for the peer", w.Code, w.Body)
	}
}

func TestARefusalHasTheMessageOfItsRule(t *testing.T) {
	a := newConfigured(t, gatewayFile) // without gateways, checks name rule and key
	post(a, "/v1/take", `{"rule":"login","key":"a"}`)
	if w := ask(a, "GET", "/v1/check?rule=login&key=a", gateway); w.Code != 429 || !strings.Contains(w.Body.String(), `"detail":"Too many attempts."`) {
		t.Errorf("a check: got %d %s, want the message", w.Code, w.Body)
	}
	for path, body := range map[string]string{
		"/v1/take": `{"rule":"login","key":"a"}`, "/v1/reserve": `{"rule":"login","key":"a"}`,
		"/v1/peek": `{"attributes":{"path":"/login","method":"POST","host":"www.example.com","client":"a"}}`,
	} {
		got := post(a, path, body).Body.String()
		if strings.Contains(got, `"allowed":false`) != strings.HasSuffix(got, `,"message":"Too many attempts."}`+"\n") {
			t.Errorf("%s: got %s, want the message", path, got)
		}
	}
	if got := post(a, "/v1/take", `{"attributes":{"client":"2001:db8:1:2:3::4"}}`).Body.String(); !strings.Contains(got, `"message":"Write to`) {
		t.Errorf("a denied request: got %s, want the message", got)
	}
}

// Without the port, rules of a port would not be in force.
func TestAGatewaySendsThePortThatRulesMention(t *testing.T) {
	a := newConfigured(t, "rules:\n  - {name: a, match: {port: \"80\"}, limit: 1/h}\n")
	a.Check = newGatewayFiles(t).Check
	for _, c := range []struct {
		port   string
		status int
	}{{"", 400}, {"80", 204}, {"81", 204}, {"80", 429}} {
		var fields []string
		if c.port != "" {
			fields = []string{"X-Forwarded-Port", c.port}
		}
		if status, _, body := forward(a, "GET", "/", "a", "192.0.2.1", fields...); status != c.status {
			t.Errorf("port %q got %d %s, want %d", c.port, status, body, c.status)
		}
	}
}
