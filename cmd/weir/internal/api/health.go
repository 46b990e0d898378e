package api

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
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
	switch tells := a.Who(r).Some(auth.Admin); {
	case reason == "" && tells:
		a.readyFor(w)
	case reason == "":
		writeJSON(w, []byte(`{"status":"ready"}`+"\n"))
	default:
		if !tells && a.Unready() == "" {
			reason = "the engine does not decide; the admin port tells why"
		}
		writeProblem(w, &problem{status: http.StatusServiceUnavailable, detail: reason})
	}
}

// readyFor tells a caller with the scope admin what does not work of a daemon that is ready.
func (a *API) readyFor(w http.ResponseWriter) {
	answer := struct {
		Status string `json:"status"`
		Detail string `json:"detail,omitempty"`
	}{Status: "ready"}
	troubles := a.Troubles()
	if a.reloads.stale.Load() {
		troubles = append([]string{"the rules files have problems, and the previous rules stay in force; the log says which"}, troubles...)
	}
	answer.Detail = strings.Join(troubles, ". ")
	text, _ := json.Marshal(answer) // which holds texts alone
	writeJSON(w, append(text, '\n'))
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
	if a.Waiting != nil {
		return a.Waiting()
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
