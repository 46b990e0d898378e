package ctl

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// commands are all commands that ask a daemon, and whether they send a body: changes do, and peek.
var commands = map[string]bool{
	"peek r k": true, "reset r k": true, "grant r k 1": true, "block k --for 1h": true, "allow k --for 1h": true, "limit k 1/s --for 1h": true, "clear k": true,
	"overrides": false, "rules": false, "top": false, "top --watch": false, "snapshot": true, "drain": true,
}

// run runs a command against a server.
func run(t *testing.T, address, command string) error {
	t.Helper()
	cmd := Command()
	cmd.SetArgs(append(strings.Fields(command), "--admin", address))
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	return cmd.ExecuteContext(t.Context())
}

func TestAServerThatIsNoWeirIsAnError(t *testing.T) {
	for _, answer := range []string{`{}`, `{"ok":true}`, `[]`, `null`, `hello`, ``} {
		for _, status := range []int{200, 404, 500} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, answer)
			}))
			for command := range commands {
				if err := run(t, server.URL, command); err == nil || !strings.Contains(err.Error(), "it is not the admin port of a weir daemon") {
					t.Errorf("ctl %s, answered %d %q: got the error %v", command, status, answer, err)
				}
			}
			server.Close()
		}
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"before":null,"after":null,"rules":[],"overrides":[],"keys":[],"allowed":true,"limit":1,"remaining":1,"retry_after":0}`)
	}))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(other.URL, status))
		for command := range commands {
			if err := run(t, server.URL, command); err == nil || !strings.Contains(err.Error(), "a redirect to "+other.URL) || asked.Load() > 0 {
				t.Errorf("ctl %s, redirected with %d: got the error %v, and the other server %d requests", command, status, err, asked.Load())
			}
		}
		server.Close()
	}
}

func TestAQuestionHasNoBodyAndAChangeHasOne(t *testing.T) {
	for command, changes := range commands {
		var method, kind string
		length := int64(-2)
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			method, kind, length = r.Method, r.Header.Get("Content-Type"), r.ContentLength
		}))
		_ = run(t, server.URL, command) // which is an error
		server.Close()
		if wantMethod := map[bool]string{true: "POST", false: "GET"}[changes]; method != wantMethod || (length > 0) != changes || (kind != "") != changes {
			t.Errorf("ctl %s: got %s with %d bytes of %q", command, method, length, kind)
		}
	}
}
