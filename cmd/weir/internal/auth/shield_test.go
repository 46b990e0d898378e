package auth_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

// sent is a request as a browser, a tool or a page of another site makes it.
type sent struct {
	method, host, kind, header, origin, site, mode, dest string
}

func (s sent) request() *http.Request {
	r := httptest.NewRequest(s.method, "/v1/admin/rules", nil)
	r.Host = s.host
	for name, value := range map[string]string{"Content-Type": s.kind, auth.RequestHeader: s.header, "Origin": s.origin,
		"Sec-Fetch-Site": s.site, "Sec-Fetch-Mode": s.mode, "Sec-Fetch-Dest": s.dest} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	port := &auth.Port{Open: auth.Anyone("ops", auth.All), Hosts: func(host string) bool { return strings.HasPrefix(host, "localhost") }}
	return r.WithContext(port.Mark(r.Context()))
}

// shielded sends a request through a Shield.
func shielded(s sent) (status int, through bool, answer *httptest.ResponseRecorder) {
	answer = httptest.NewRecorder()
	auth.Shield(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { through = true })).ServeHTTP(answer, s.request())
	return answer.Code, through, answer
}

func TestPagesOfOtherSitesReachNothingBehindAShield(t *testing.T) {
	script := sent{method: "POST", host: "localhost:8080", kind: "application/json", header: "page", origin: "http://localhost:8080", site: "same-origin", mode: "cors", dest: "empty"}
	curl := sent{method: "POST", host: "localhost", kind: "application/json", header: "curl"}
	changed := func(s sent, change func(*sent)) sent { change(&s); return s }
	for name, c := range map[string]struct {
		sent   sent
		status int
	}{
		"our script":                 {script, 200},
		"weir ctl or curl":           {curl, 200},
		"JSON with its charset":      {changed(curl, func(s *sent) { s.kind = "application/json; charset=utf-8" }), 200},
		"a person at the page":       {sent{method: "GET", host: "localhost", site: "none", mode: "navigate", dest: "document"}, 200},
		"a link of another site":     {sent{method: "GET", host: "localhost", site: "cross-site", mode: "navigate", dest: "document"}, 200},
		"a rebound name that reads":  {sent{method: "GET", host: "evil.example:8080", site: "same-origin", mode: "cors", dest: "empty"}, 421},
		"a rebound name that writes": {changed(script, func(s *sent) { s.host, s.origin = "evil.example:8080", "http://evil.example:8080" }), 421},
		"a form of another site": {sent{method: "POST", host: "localhost:8080", kind: "text/plain", origin: "http://evil.example", site: "cross-site", mode: "navigate",
			dest: "document"}, 403},
		"a form without a site's name":   {sent{method: "POST", host: "localhost:8080", kind: "application/x-www-form-urlencoded"}, 415},
		"a form of an old browser":       {sent{method: "POST", host: "localhost:8080", kind: "text/plain", origin: "http://evil.example"}, 403},
		"a sandboxed form":               {sent{method: "POST", host: "localhost:8080", kind: "text/plain", origin: "null"}, 403},
		"another port of this machine":   {changed(script, func(s *sent) { s.origin, s.site = "http://localhost:3000", "same-site" }), 403},
		"a frame":                        {sent{method: "GET", host: "localhost:8080", site: "cross-site", mode: "navigate", dest: "iframe"}, 403},
		"a stream of another site":       {sent{method: "GET", host: "localhost:8080", site: "cross-site", mode: "no-cors", dest: "image"}, 403},
		"a read by an old browser":       {sent{method: "GET", host: "localhost:8080", origin: "http://evil.example"}, 403},
		"a read from a sandbox":          {sent{method: "HEAD", host: "localhost:8080", origin: "null"}, 403},
		"our own read by an old browser": {sent{method: "GET", host: "localhost:8080", origin: "http://localhost:8080"}, 200},
		"our origin without our header":  {changed(script, func(s *sent) { s.header = "" }), 403},
		"a beacon":                       {changed(script, func(s *sent) { s.header, s.kind = "", "text/plain" }), 415},
		"curl -d as it stands":           {changed(curl, func(s *sent) { s.header, s.kind = "", "application/x-www-form-urlencoded" }), 415},
		"curl with the type of the body": {changed(curl, func(s *sent) { s.header = "" }), 403},
	} {
		status, through, answer := shielded(c.sent)
		if status != c.status || through != (c.status == 200) {
			t.Errorf("%s: got %d, and the handler was called: %v; want %d", name, status, through, c.status)
		}
		if strings.HasPrefix(name, "curl ") && !strings.Contains(answer.Body.String(), "-H 'Weir-Request: curl'") {
			t.Errorf("%s: got %s, want what to add", name, answer.Body)
		}
	}
}

func TestEveryAnswerBehindAShieldForbidsFramesAndCopies(t *testing.T) {
	for _, host := range []string{"localhost", "evil.example"} {
		_, _, answer := shielded(sent{method: "GET", host: host})
		for name, want := range map[string]string{"Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := answer.Header().Get(name); !strings.Contains(got, want) {
				t.Errorf("Host %s: %s is %q, want %q in it", host, name, got, want)
			}
		}
		if answer.Header().Get("Access-Control-Allow-Origin") != "" || strings.Contains(answer.Header().Get("Content-Security-Policy"), "unsafe") {
			t.Errorf("Host %s: got the header %v", host, answer.Header())
		}
	}
}

func TestNoReadOfAnotherOriginComesThroughAShield(t *testing.T) {
	r := rand.New(rand.NewPCG(44, 2))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	passed := 0
	for range 5000 {
		s := sent{method: pick("GET", "HEAD"), host: pick("localhost", "localhost:8080", "evil.example"), site: pick("", "none", "same-origin", "same-site", "cross-site"),
			origin: pick("", "null", "http://localhost:8080", "http://localhost", "http://evil.example"), mode: pick("cors", "navigate"), dest: pick("empty", "document", "iframe")}
		_, through, _ := shielded(s)
		visits := s.mode == "navigate" && s.dest == "document"
		ours := s.site == "none" || s.site == "same-origin" || s.site == "" && (s.origin == "" || s.origin == "http://"+s.host)
		if want := strings.HasPrefix(s.host, "localhost") && (ours || s.site != "" && visits); through != want {
			t.Fatalf("%+v: the handler was called: %v, want %v", s, through, want)
		}
		if through {
			passed++
		}
	}
	if passed == 0 {
		t.Error("no request came through")
	}
}

// Whatever a page can make a browser send, no write comes through without the type, the field, the Host and the origin.
func TestNoMixOfFieldsWritesThroughAShield(t *testing.T) {
	r := rand.New(rand.NewPCG(44, 1))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	passed := 0
	for range 20_000 {
		s := sent{pick("POST", "PUT", "DELETE", "PATCH"), pick("localhost", "localhost:8080", "evil.example", ""), pick("application/json", "text/plain", "", "multipart/form-data; boundary=x", "application/json;x"),
			pick("page", ""), pick("", "null", "http://localhost:8080", "http://localhost", "http://evil.example", "https://localhost.evil.example"),
			pick("", "none", "same-origin", "same-site", "cross-site"), pick("", "cors", "navigate", "no-cors"), pick("", "empty", "document", "iframe")}
		status, through, _ := shielded(s)
		ours := s.kind == "application/json" && s.header == "page" && strings.HasPrefix(s.host, "localhost") && (s.site == "same-origin" || s.site == "none" ||
			s.site == "" && (s.origin == "" || s.origin == "http://"+s.host))
		if through != ours {
			t.Fatalf("%s: got %d, and the handler was called: %v, want %v", fmt.Sprintf("%+v", s), status, through, ours)
		}
		if through {
			passed++
		}
	}
	if passed == 0 {
		t.Error("no request came through")
	}
}
