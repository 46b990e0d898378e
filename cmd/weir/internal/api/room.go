package api

import (
	"context"
	"net/http"
	"time"
)

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
		a.alive(w, r)
		return
	}
	a.noRoom.warn(a.log, "refused a request: too many connections")
	writeProblem(w, &problem{status: http.StatusServiceUnavailable, detail: "too many connections; nothing was admitted; ask again, or reuse an open connection"})
}
