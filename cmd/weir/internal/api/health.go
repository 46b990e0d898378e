package api

import (
	"context"
	_ "embed"
	"net/http"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/door"
)

//go:embed openapi.json
var openAPIDocument []byte

func (a *API) openAPI(w http.ResponseWriter, _ *http.Request, _ asker) {
	writeJSON(w, openAPIDocument)
}

// alive reports that the process is alive.
func (a *API) alive(w http.ResponseWriter, _ *http.Request, _ asker) {
	writeJSON(w, []byte(`{"status":"alive"}`+"\n"))
}

// readiness reports whether the daemon should receive new work, and with ?engine=1 also whether its engine decides. It tells
// reasons to callers with the scope admin.
func (a *API) readiness(w http.ResponseWriter, r *http.Request, _ asker) {
	reason := a.Unready()
	engine, p := asksOfEngine(r)
	if p != nil {
		writeProblem(w, p)
		return
	}
	if reason == "" && engine {
		reason = a.desk.EngineFails()
	}
	tells := a.Who(r).Some(door.Admin)
	switch {
	case reason != "":
		if !tells && a.phase.Load() == serving {
			reason = "the engine does not decide; the admin port tells why"
		}
		writeProblem(w, &problem{status: http.StatusServiceUnavailable, detail: reason})
	case tells && a.reloads.stale.Load():
		writeJSON(w, []byte(`{"status":"ready","detail":"the rules files have problems, and the rules before stay in force; the log says which"}`+"\n"))
	default:
		writeJSON(w, []byte(`{"status":"ready"}`+"\n"))
	}
}

// asksOfEngine reports whether a request asks for the state of the engine.
func asksOfEngine(r *http.Request) (bool, *problem) {
	switch values := r.URL.Query()["engine"]; {
	case len(values) == 0, len(values) == 1 && values[0] == "0":
		return false, nil
	case len(values) == 1 && values[0] == "1":
		return true, nil
	}
	return false, &problem{status: http.StatusBadRequest, field: "engine", detail: "engine is 1 to ask for the state of the engine, or 0"}
}

// Unready returns the reason why the daemon should receive no new work, or "". A failing engine is none: the policy of each
// rule answers, and no other daemon on that engine could do better.
func (a *API) Unready() string {
	if a.phase.Load() != serving {
		return "the daemon is stopping; send new requests elsewhere"
	}
	return ""
}

// The phases of a server, in order.
const (
	serving int32 = iota
	stopping
	ending
)

// Stopping ends readiness permanently, and answers all waiting callers with 503. The API continues to decide, and each
// answer tells the client to close its connection.
func (a *API) Stopping() {
	a.phase.Store(stopping)
	a.desk.Stop()
}

// Ending makes each answer the last on its connection.
func (a *API) Ending() { a.phase.Store(ending) }

// sayClose tells the client of a stopping server to send no further request on the connection. The server keeps the
// connection open until the end, because requests may already be on their way.
func (a *API) sayClose(h http.Header) {
	switch a.phase.Load() {
	case stopping:
		h["connection"] = []string{"close"} // net/http closes the connection for the canonical spelling only
	case ending:
		h.Set("Connection", "close")
	}
}

// withoutRoom is the context key of WithoutRoom.
type withoutRoom struct{}

// WithoutRoom marks the context of a spare connection, for which the server has no room. The API refuses its
// requests, except the liveness check, and closes it after the answer.
func WithoutRoom(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutRoom{}, true)
}

func roomless(ctx context.Context) bool { return ctx.Value(withoutRoom{}) != nil }

// refusalTime bounds how long a refused connection reads the rest of its request.
const refusalTime = time.Second

func (a *API) refuseRoom(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusalTime))
	w.Header().Set("Connection", "close")
	if r.URL.Path == "/healthz" {
		a.alive(w, r, asker{})
		return
	}
	a.noRoom.Warn(a.Log, "refused a request: too many connections")
	writeProblem(w, &problem{status: http.StatusServiceUnavailable, detail: "too many connections; nothing was admitted; ask again, or reuse an open connection"})
}
