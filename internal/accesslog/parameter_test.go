package accesslog

import (
	"slices"
	"testing"
)

// A parameter of the query is a field, wherever a format has the query. A request without the parameter has a dash.
func TestAParameterOfTheQueryIsAField(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`192.0.2.9 - - [24/Aug/2026:21:04:17 +0000] "GET /a?api_key=k1&b=1 HTTP/1.1" 200 5 "-" "-"`, "k1|k1"},
		{`192.0.2.9 - - [24/Aug/2026:21:04:17 +0000] "GET /a?b=1&api%5Fkey=k%201+2&api_key=k3 HTTP/1.1" 200 5 "-" "-"`, "k 1 2|k 1 2"},
		{`192.0.2.9 - - [24/Aug/2026:21:04:17 +0000] "GET /a?b=1&api_key HTTP/1.1" 200 5 "-" "-"`, "|"},
		{`192.0.2.9 - - [24/Aug/2026:21:04:17 +0000] "GET /a?xapi_key=1 HTTP/1.1" 200 5 "-" "-"`, "-|-"},
		{`192.0.2.9 - - [24/Aug/2026:21:04:17 +0000] "GET /a?api_key=%zz HTTP/1.1" 200 5 "-" "-"`, "%zz|%zz"},
		{`{"ts":1,"ip":"192.0.2.9","uri":"/a?api_key=k1"}`, "k1|k1"},
		{`{"ts":1,"ip":"192.0.2.9","path":"/a","query":"b=1&api_key=k1"}`, "k1|k1"},
		{`{"ts":1,"ip":"192.0.2.9","arg_api_key":"k1"}`, "k1|k1"},
	} {
		if got, _ := read(t, Options{}, c.line, "query.api_key", "arg_api_key"); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: got %q, want %q", c.line, got, c.want)
		}
	}
}

// Caddy logs all header fields of a request. One that a line lacks is one that the request did not have.
func TestAFieldThatIsNotAmongAllHeadersIsNone(t *testing.T) {
	for line, want := range map[string]string{
		`{"ts":1700000000.1,"request":{"client_ip":"192.0.2.1","uri":"/","headers":{"X-Api-Key":["k1"]}}}`: "k1|-",
		`{"ts":1700000000.1,"request":{"client_ip":"192.0.2.1","uri":"/","headers":{"Accept":["*/*"]}}}`:   "-|-",
		`{"ts":1700000000.1,"request":{"client_ip":"192.0.2.1","uri":"/"}}`:                                `(has no header.x-api-key, or one cut short)|(has no header.user-agent, or one cut short)`,
	} {
		if got, _ := read(t, Options{}, line, "header.x-api-key", "header.user-agent"); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
