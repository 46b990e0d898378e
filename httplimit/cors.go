package httplimit

import (
	"net/http"
	"slices"
)

// CORS lets scripts in browsers read refusals and the header fields about limits.
// It is only needed where the handler that answers for CORS stands behind this
// middleware: one that stands before it has set its fields already, and then the
// fields about limits are exposed as well.
type CORS struct {
	// Origins may read: such as "https://app.example", or "*" for all.
	Origins []string
	// Credentials says that they send cookies or other credentials. It excludes "*".
	Credentials bool
}

func (c *CORS) check() error {
	if c.Credentials && slices.Contains(c.Origins, "*") {
		return optionError("cors", `has credentials and the origin "*", which browsers refuse together: list the origins`)
	}
	return nil
}

// isPreflight says that a browser asks whether a script may send a request.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && len(r.Header["Origin"]) > 0 && len(r.Header["Access-Control-Request-Method"]) > 0
}

const (
	allowOrigin      = "Access-Control-Allow-Origin"
	allowCredentials = "Access-Control-Allow-Credentials"
	exposeHeaders    = "Access-Control-Expose-Headers"
)

// exposed are the fields that a script wants to read, in any format.
const exposed = "Retry-After, RateLimit, RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, " +
	"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"

// expose adds the fields that let a script read the answer. An admitted answer is
// left to its handler, which says itself who may read it.
func (l *limiter) expose(h http.Header, r *http.Request, refused bool) {
	origin := r.Header["Origin"]
	if len(origin) != 1 || !refused && l.Headers == NoHeaders {
		return
	}
	if len(h[allowOrigin]) == 0 {
		switch {
		case !l.CORS.allows(origin[0]):
			return
		case refused:
			l.CORS.allow(h, origin[0])
		}
	}
	h.Add(exposeHeaders, exposed)
}

func (c *CORS) allows(origin string) bool {
	return slices.Contains(c.Origins, "*") || slices.Contains(c.Origins, origin)
}

func (c *CORS) allow(h http.Header, origin string) {
	if slices.Contains(c.Origins, "*") {
		h.Set(allowOrigin, "*")
		return
	}
	h.Set(allowOrigin, origin)
	h.Add("Vary", "Origin")
	if c.Credentials {
		h.Set(allowCredentials, "true")
	}
}
