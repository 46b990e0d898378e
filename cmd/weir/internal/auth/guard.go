package auth

import (
	"encoding/json"
	"net/http"
)

// Guard serves requests that need a scope for no particular rule: those of the right Host and origin, and of callers
// that have the scope.
func Guard(scope Scope, next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := Of(r)
		switch {
		case !Serves(r):
			Refuse(w, *unknownHost(r))
		case origin.Check(r) != nil:
			Refuse(w, Denied{http.StatusForbidden, "requests from pages of another origin are refused"})
		case !who.May(scope, ""):
			Refuse(w, who.Deny(scope, ""))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Refuse writes an answer to a caller that is turned away.
func Refuse(w http.ResponseWriter, d Denied) {
	d.Challenge(w.Header())
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(d.Status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(map[string]any{"type": "about:blank", "title": http.StatusText(d.Status), "status": d.Status, "detail": d.Detail}) // the client may have left
}

// Challenge says in the header how a caller can show who it is.
func (d Denied) Challenge(h http.Header) {
	if d.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="weir"`)
	}
}
