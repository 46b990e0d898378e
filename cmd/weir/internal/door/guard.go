package door

import (
	"fmt"
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
			refuse(w, Denied{http.StatusMisdirectedRequest, "this Host is unknown; weir serve --host NAME adds one"})
		case origin.Check(r) != nil:
			refuse(w, Denied{http.StatusForbidden, "requests from pages of another origin are refused"})
		case !who.May(scope, ""):
			refuse(w, who.Deny(scope, ""))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, d Denied) {
	d.Challenge(w.Header())
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(d.Status)
	_, _ = fmt.Fprintf(w, `{"type":"about:blank","title":%q,"status":%d,"detail":%q}`+"\n", http.StatusText(d.Status), d.Status, d.Detail)
}

// Challenge says in the header how a caller can show who it is.
func (d Denied) Challenge(h http.Header) {
	if d.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="weir"`)
	}
}
