package httplimit

import (
	"net/http"
	"slices"
)

// CORS lets scripts in browsers read refusals and the header fields about limits. You need it only if the handler
// that answers for CORS is inside this middleware. A CORS handler outside it has set its fields already, and this
// middleware then exposes the fields about limits as well.
type CORS struct {
	// Origins lists the origins that may read: such as "https://app.example", or "*" for all.
	Origins []string
	// Credentials allows requests with cookies or other credentials. It excludes "*".
	Credentials bool
}

func (c *CORS) check() error {
	if c.Credentials && slices.Contains(c.Origins, "*") {
		return optionError("cors", `has credentials and the origin "*", which browsers refuse together: list the origins`)
	}
	return nil
}

// isPreflight reports whether a browser asks if a script may send a request.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && len(r.Header["Origin"]) > 0 && len(r.Header["Access-Control-Request-Method"]) > 0
}

const (
	allowOrigin      = "Access-Control-Allow-Origin"
	allowCredentials = "Access-Control-Allow-Credentials"
	exposeHeaders    = "Access-Control-Expose-Headers"
)

// exposed lists the fields that a script wants to read, in any format.
const exposed = "Retry-After, RateLimit, RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, " +
	"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"

// expose adds the fields that let a script read the answer. The handler of an admitted request decides itself which
// origins may read its answer.
func (c *CORS) expose(h http.Header, r *http.Request, refused, hasFields bool) {
	origin := r.Header["Origin"]
	if len(origin) != 1 || !refused && !hasFields {
		return
	}
	if len(h[allowOrigin]) == 0 {
		switch {
		case !c.allows(origin[0]):
			return
		case refused:
			c.allow(h, origin[0])
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
