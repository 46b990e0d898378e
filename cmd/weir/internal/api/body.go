package api

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// The bounds of what bodies may occupy. The largest body holds MaxRequests
// requests with keys of MaxKey bytes in plain text.
const (
	maxBody     = 1 << 20
	smallBody   = 16 << 10
	largeBodies = 32 // bodies above smallBody, or of unknown size, read at once
)

// read fills the call with the requests of the body, or says what is wrong.
func (a *API) read(c *call, w http.ResponseWriter, r *http.Request, negative bool) *problem {
	if p := checkHeader(r.Header); p != nil {
		return p
	}
	if r.ContentLength > maxBody {
		return tooLarge()
	}
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		if !a.bodies.enter(r) {
			return &problem{status: http.StatusServiceUnavailable, detail: "too many large bodies at once; ask again"}
		}
		defer a.bodies.leave()
	} else {
		c.body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	if _, err := c.body.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return tooLarge()
		}
		return badField("body", "could not be read to its end")
	}
	return c.decode(a.rules, negative)
}

func tooLarge() *problem {
	return &problem{status: http.StatusRequestEntityTooLarge, field: "body", detail: fmt.Sprintf("body is over %d bytes", maxBody)}
}

// checkHeader refuses what is declared to be something other than plain JSON.
// No declaration is fine, and so is the one that curl -d makes on its own.
func checkHeader(h http.Header) *problem {
	if declared := h.Get("Content-Type"); declared != "" && declared != "application/json" {
		kind, _, err := mime.ParseMediaType(declared)
		if err != nil || kind != "application/json" && kind != "application/x-www-form-urlencoded" && !strings.HasSuffix(kind, "+json") {
			return unsupported("Content-Type", declared, "application/json")
		}
	}
	if coding := h.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return unsupported("Content-Encoding", coding, "none")
	}
	return nil
}

func unsupported(header, got, want string) *problem {
	return &problem{
		status: http.StatusUnsupportedMediaType, field: header,
		detail: fmt.Sprintf("%s is %s, want %s", header, quote(got), want),
	}
}

// bodyGate bounds how many large bodies are in memory: each takes a place.
type bodyGate chan struct{}

// enter waits for a place as long as the client does.
func (g bodyGate) enter(r *http.Request) bool {
	select {
	case g <- struct{}{}:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (g bodyGate) leave() { <-g }
