package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// fault is a faulty request and the expected problem.
type fault struct {
	path, body string
	status     int
	field      string
	detail     string
}

// TestRequestsForOtherHostsAreNotAnswered sends requests to every path, like a web page whose name resolves to this
// machine.
func TestRequestsForOtherHostsAreNotAnswered(t *testing.T) {
	f := newFixture(t, usual)
	f.Options.Serves = func(r *http.Request) bool { return r.Host == "here:80" }
	ask := func(method, path, host string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(`{"key":"a"}`))
		r.Host = host
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		return w
	}
	for path, route := range routes {
		w := ask(route.methods[0], path, "evil.example")
		checkProblem(t, path, w, fault{
			status: http.StatusMisdirectedRequest, field: "Host",
			detail: `Host "evil.example" is unknown; weir serve --host NAME adds one`,
		})
	}
	if w := ask(http.MethodPost, "/v1/take", "here:80"); !strings.Contains(w.Body.String(), `"remaining":19,`) {
		t.Errorf("a request for this host, after others: got %d %s, want the first unit taken", w.Code, w.Body)
	}
}

// TestFaultsSayWhatAndWhere is the table of faulty input, with the exact message of each.
func TestFaultsSayWhatAndWhere(t *testing.T) {
	long := strings.Repeat("k", weir.MaxKey+1)
	many := strings.TrimSuffix(strings.Repeat(`{"key":"a"},`, weir.MaxRequests+1), ",")
	const bad = http.StatusBadRequest
	faults := []fault{
		{"take", ``, bad, "body", `body is empty`},
		{"take", " \n", bad, "body", `body is empty`},
		{"take", `{"key":"a"`, bad, "body", `body ends before the document does`},
		{"take", `{"key":"a`, bad, "body", `body ends before the document does`},
		{"take", `{"requests":[`, bad, "body", `body ends before the document does`},
		{"take", `{"key":"a"}}`, bad, "body", `body continues after the document`},
		{"take", `{"key":"a"} {"key":"b"}`, bad, "body", `body continues after the document`},
		{"take", `{"key":"a"}x`, bad, "body", `body continues after the document`},
		{"take", `key=a`, bad, "body", `body is not JSON at byte 1: invalid character 'k' at start of value`},
		{"take", `{key:"a"}`, bad, "body", `body is not JSON at byte 2: invalid character 'k' at start of value`},
		{"take", `{"key" "a"}`, bad, "body", `body is not JSON at byte 8: invalid character '"' after object name (expecting ':')`},
		{"take", `{"key":"a",}`, bad, "body", `body is not JSON at byte 11: invalid character ',' at start of value`},
		{"take", `{"key":"a","key":"b"}`, bad, "body", `body has the field "key" twice`},
		{"take", `{"requests":[{"cost":1,"key":"a","cost":2}]}`, bad, "body", `body has the field "cost" twice`},
		{"take", "{\"key\":\"a\xff\"}", bad, "body", `body is not JSON at byte 10: invalid UTF-8`},
		{"take", `{"key":"\ud800"}`, bad, "body", "body is not JSON at byte 9: invalid surrogate pair `\\ud800\"}` in string"},
		{"take", "{\"key\":\"a\nb\"}", bad, "body", `body is not JSON at byte 10: invalid character '\n' in string (expecting non-control character)`},
		{"take", `[{"key":"a"}]`, bad, "body", `body is a list, not an object`},
		{"take", `"alice"`, bad, "body", `body is a string, not an object`},
		{"take", `null`, bad, "body", `body is null, not an object`},
		{"take", `{}`, bad, "key", `key is missing (the empty key is written "")`},
		{"take", `{"rule":"default","cost":1}`, bad, "key", `key is missing (the empty key is written "")`},
		{"take", `{"key":null}`, bad, "key", `key is null, not a string`},
		{"take", `{"key":7}`, bad, "key", `key is a number, not a string`},
		{"take", `{"key":["a"]}`, bad, "key", `key is a list, not a string`},
		{"take", `{"key":"` + long + `"}`, bad, "key", `key has 4097 bytes, more than 4096`},
		{"take", `{"Key":"a"}`, bad, "body", `body has the field "Key", not one of rule, key, cost, requests`},
		{"take", `{"key":"a","burst":5}`, bad, "body", `body has the field "burst", not one of rule, key, cost, requests`},
		{"take", `{"` + long + `":1}`, bad, "body", `body has the field "` + long[:64] + `"…, not one of rule, key, cost, requests`},
		{"take", `{"key":"a","rule":"nosuch"}`, bad, "rule", `rule is "nosuch", and no rule has that name`},
		{"take", `{"key":"a","rule":""}`, bad, "rule", `rule is "", and no rule has that name`},
		{"take", `{"key":"a","rule":true}`, bad, "rule", `rule is true, not a string`},
		{"take", `{"key":"a","cost":1.5}`, bad, "cost", `cost is 1.5, not a whole number in plain digits`},
		{"take", `{"key":"a","cost":1.0}`, bad, "cost", `cost is 1.0, not a whole number in plain digits`},
		{"take", `{"key":"a","cost":1e3}`, bad, "cost", `cost is 1e3, not a whole number in plain digits`},
		{"take", `{"key":"a","cost":"1"}`, bad, "cost", `cost is a string, not a whole number`},
		{"take", `{"key":"a","cost":null}`, bad, "cost", `cost is null, not a whole number`},
		{"take", `{"key":"a","cost":false}`, bad, "cost", `cost is false, not a whole number`},
		{"take", `{"key":"a","cost":9223372036854775808}`, bad, "cost", `cost is 9223372036854775808, above 64 bits`},
		{"take", `{"key":"a","cost":` + strings.Repeat("9", 500) + `}`, bad, "cost", `cost is ` + strings.Repeat("9", 40) + `…, above 64 bits`},
		{"take", `{"key":"a","cost":-1}`, bad, "cost", `cost is -1, below 0; /v1/return gives units back`},
		{"peek", `{"key":"a","cost":-1}`, bad, "cost", `cost is -1, below 0; /v1/return gives units back`},
		{"record", `{"key":"a","cost":-9223372036854775809}`, bad, "cost", `cost is -9223372036854775809, above 64 bits`},
		{"reset", `{"rule":"nosuch","key":"a"}`, bad, "rule", `rule is "nosuch", and no rule has that name`},
		{"take", `{"requests":[]}`, bad, "requests", `requests is empty`},
		{"take", `{"requests":{"key":"a"}}`, bad, "requests", `requests is an object, not a list`},
		{"take", `{"requests":null}`, bad, "requests", `requests is null, not a list`},
		{"take", `{"requests":["a"]}`, bad, "requests[0]", `requests[0] is a string, not an object`},
		{"take", `{"requests":[` + many + `]}`, bad, "requests", `requests has more than 128 elements`},
		{"take", `{"requests":[{"key":"a"},{"cost":2}]}`, bad, "requests[1].key", `requests[1].key is missing (the empty key is written "")`},
		{"take", `{"requests":[{"key":"a"},{"key":"b","cost":-2}]}`, bad, "requests[1].cost", `requests[1].cost is -2, below 0; /v1/return gives units back`},
		{"take", `{"requests":[{"key":"a","requests":[]}]}`, bad, "requests[0]", `requests[0] has the field "requests", not one of rule, key, cost`},
		{"take", `{"requests":[{"key":"a"}],"key":"b"}`, bad, "requests", `requests excludes rule, key and cost`},
		{"take", `{"cost":1,"requests":[{"key":"a"}]}`, bad, "requests", `requests excludes rule, key and cost`},
		{"take", `{"requests":[{"key":"a"},{"rule":"line","key":"b"}]}`, bad, "rule", `rule "line": rule cannot be decided together with others: it delays, or counts denied attempts`},
		{"take", `{"key":"` + strings.Repeat("k", maxBody) + `"}`, http.StatusRequestEntityTooLarge, "body", `body is larger than 1048576 bytes`},
		{"nosuch", `{"key":"a"}`, http.StatusNotFound, "", `the path does not exist; GET /openapi.json lists the paths`},
		{"take/", `{"key":"a"}`, http.StatusNotFound, "", `the path does not exist; GET /openapi.json lists the paths`},
	}
	f := newFixture(t, usual, "line=leaky bucket 1/s queue 5")
	for _, bad := range faults {
		checkProblem(t, decide.Quote(bad.path+" "+bad.body), post(f, "/v1/"+bad.path, bad.body), bad)
	}
	w := post(f, "/v1/peek", `{"key":"a"}`)
	if !strings.Contains(w.Body.String(), `"remaining":20,`) {
		t.Errorf("after bad requests only, the key is not fresh: %s", w.Body)
	}
}

// checkProblem checks a problem that counted nothing.
func checkProblem(t *testing.T, what string, w *httptest.ResponseRecorder, want fault) {
	t.Helper()
	checkCounted(t, what, w, want, "no")
}

func checkCounted(t *testing.T, what string, w *httptest.ResponseRecorder, want fault, counted string) {
	t.Helper()
	text, err := json.Marshal(want.detail)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(text)))
	body := fmt.Sprintf(`{"type":"about:blank","title":"%s","status":%d,"counted":"%s","detail":%s`, http.StatusText(want.status), want.status, counted, text)
	if want.field != "" {
		body += `,"field":"` + want.field + `"`
	}
	body += "}\n"
	if w.Code != want.status || w.Body.String() != body || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s:\n got %d %s %swant %d application/problem+json %s", what, w.Code, w.Header().Get("Content-Type"), w.Body, want.status, body)
	}
}

func TestFaultsOfTheHeaderSayWhatAndWhere(t *testing.T) {
	const unsupported = http.StatusUnsupportedMediaType
	tests := []struct {
		method, path, header, value string
		want                        fault
	}{
		{"POST", "/v1/take", "Content-Type", "text/xml", fault{status: unsupported, field: "Content-Type", detail: `Content-Type is "text/xml", want application/json`}},
		{"POST", "/v1/take", "Content-Type", ";;", fault{status: unsupported, field: "Content-Type", detail: `Content-Type is ";;", want application/json`}},
		{"POST", "/v1/take", "Content-Encoding", "gzip", fault{status: unsupported, field: "Content-Encoding", detail: `Content-Encoding is "gzip", want none`}},
		{"POST", "/v1/take", "Origin", "https://elsewhere.example", fault{status: http.StatusForbidden, detail: `requests from pages of another origin are refused`}},
		{"GET", "/v1/take", "", "", fault{status: http.StatusMethodNotAllowed, detail: `this path takes POST`}},
		{"PUT", "/v1/reset", "", "", fault{status: http.StatusMethodNotAllowed, detail: `this path takes POST`}},
		{"POST", "/readyz", "", "", fault{status: http.StatusMethodNotAllowed, detail: `this path takes GET, HEAD`}},
		{"GET", "/", "", "", fault{status: http.StatusNotFound, detail: `the path does not exist; GET /openapi.json lists the paths`}},
	}
	f := newFixture(t, usual)
	for _, test := range tests {
		r := httptest.NewRequest(test.method, test.path, strings.NewReader(`{"key":"a"}`))
		r.Header.Set(test.header, test.value)
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		checkProblem(t, fmt.Sprintf("%s %s, %s: %s", test.method, test.path, test.header, test.value), w, test.want)
		if allow := w.Header().Get("Allow"); test.want.status == http.StatusMethodNotAllowed && !strings.HasSuffix(test.want.detail, " "+allow) {
			t.Errorf("%s %s: Allow is %q, but the problem says %q", test.method, test.path, allow, test.want.detail)
		}
	}
}

func TestUsualContentTypesAreUnderstood(t *testing.T) {
	f := newFixture(t, usual)
	for _, kind := range []string{"", "application/json", "application/json; charset=utf-8", "application/vnd.x+json", "application/x-www-form-urlencoded"} {
		r := httptest.NewRequest(http.MethodPost, "/v1/peek", strings.NewReader(`{"key":"a"}`))
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("Content-Type %q: got %d %s", kind, w.Code, w.Body)
		}
	}
}

func TestBodyOfUnknownSizeIsBounded(t *testing.T) {
	f := newFixture(t, usual)
	for size, want := range map[int]int{weir.MaxKey: http.StatusOK, maxBody: http.StatusRequestEntityTooLarge} {
		r := httptest.NewRequest(http.MethodPost, "/v1/take", io.MultiReader(strings.NewReader(`{"key":"`+strings.Repeat("k", size)+`"}`)))
		r.ContentLength = -1
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("key of %d bytes in a body of unknown size: got %d %.100s, want %d", size, w.Code, w.Body, want)
		}
	}
}

func TestMostRequestsWithLongestKeysFit(t *testing.T) {
	f := newFixture(t, usual)
	one := `{"key":"` + strings.Repeat("k", weir.MaxKey) + `","cost":0}`
	body := `{"requests":[` + strings.TrimSuffix(strings.Repeat(one+",", weir.MaxRequests), ",") + `]}`
	if w := post(f, "/v1/take", body); w.Code != http.StatusOK {
		t.Errorf("%d requests in %d bytes: got %d %.100s", weir.MaxRequests, len(body), w.Code, w.Body)
	}
}
