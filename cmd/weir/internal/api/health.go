package api

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var openAPIDocument []byte

func (a *API) openAPI(w http.ResponseWriter, _ *http.Request) { writeJSON(w, openAPIDocument) }

// alive says that the process is alive, and that alone.
func (a *API) alive(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, []byte(`{"status":"alive"}`+"\n"))
}

// readiness says whether new work should be sent here.
func (a *API) readiness(w http.ResponseWriter, _ *http.Request) {
	if a.phase.Load() != serving {
		writeProblem(w, &problem{status: http.StatusServiceUnavailable, detail: "stopping: requests in flight finish, send new ones elsewhere"})
		return
	}
	if reason := a.health.unready(); reason != "" {
		writeProblem(w, &problem{status: http.StatusServiceUnavailable, detail: reason})
		return
	}
	writeJSON(w, []byte(`{"status":"ready"}`+"\n"))
}

// The phases of a server: they follow one another.
const (
	serving int32 = iota
	stopping
	ending
)

// Stopping turns readiness off for good. Decisions are answered as before, and
// each answer tells the client to close its connection.
func (a *API) Stopping() { a.phase.Store(stopping) }

// Ending makes each answer the last of its connection.
func (a *API) Ending() { a.phase.Store(ending) }

// sayClose tells the client of a server that stops to send nothing more on the
// connection. Until the end, the server keeps it open all the same: requests
// that were on their way are answered, too.
func (a *API) sayClose(h http.Header) {
	switch a.phase.Load() {
	case stopping:
		h["connection"] = []string{"close"} // net/http closes after the other spelling
	case ending:
		h.Set("Connection", "close")
	}
}
