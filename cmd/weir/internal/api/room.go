package api

import (
	"context"
	"net/http"
)

// withoutRoom is the key of what WithoutRoom says.
type withoutRoom struct{}

// WithoutRoom marks the context of a connection that is one too many. What is
// asked over it is not decided; only whether the process is alive is told. The
// connection ends with the answer.
func WithoutRoom(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutRoom{}, true)
}

func roomless(ctx context.Context) bool { return ctx.Value(withoutRoom{}) != nil }

func (a *API) refuseRoom(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	if r.URL.Path == "/healthz" {
		a.alive(w, r)
		return
	}
	a.noRoom.warn(a.log, "a request was refused: too many connections")
	writeProblem(w, &problem{status: http.StatusServiceUnavailable, detail: "too many connections, and nothing was admitted; ask again, or over a connection that is open"})
}
