package api

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var openAPIDocument []byte

func (a *API) openAPI(w http.ResponseWriter, _ *http.Request) { writeJSON(w, openAPIDocument) }

// health says that the process is alive, and that alone.
func (a *API) health(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, []byte(`{"status":"alive"}`+"\n"))
}

// readiness says whether new work should be sent here.
func (a *API) readiness(w http.ResponseWriter, _ *http.Request) {
	if a.stopping.Load() {
		writeProblem(w, &problem{status: http.StatusServiceUnavailable, detail: "stopping: requests in flight finish, send new ones elsewhere"})
		return
	}
	writeJSON(w, []byte(`{"status":"ready"}`+"\n"))
}

// Stopping turns readiness off for good. Decisions are answered as before.
func (a *API) Stopping() { a.stopping.Store(true) }
