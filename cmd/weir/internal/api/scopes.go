package api

import (
	"net/http"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/door"
)

// scopes are what callers need for a path: for each rule of the request, or at all if no rule is named. Other paths need
// nothing, or see to it themselves.
var scopes = map[string]door.Scope{
	takePath: door.Take, peekPath: door.Take, "/v1/record": door.Take, "/v1/wait": door.Take, "/v1/reserve": door.Take, "/v1/settle": door.Take,
	"/v1/renew": door.Take, "/v1/check": door.Take, "/v1/return": door.Refund, "/v1/reset": door.Admin, "/v1/stats": door.Metrics,
}

// admit returns a problem for a caller that may use the path for no rule. Its body is not read.
func (a *API) admit(r *http.Request) *problem {
	scope := scopes[r.URL.Path]
	if a.who == nil || scope == 0 {
		return nil
	}
	if who := a.who(r); !who.Some(scope) {
		return denied(who, scope, "")
	}
	return nil
}

// mayAsk returns a problem for a caller that may not ask for the rules of the requests.
func (a *API) mayAsk(r *http.Request, requests []weir.Request) *problem {
	if a.who == nil {
		return nil
	}
	who, scope := a.who(r), scopes[r.URL.Path]
	for i := range requests {
		name, _, _ := strings.Cut(requests[i].Rule.Name(), "~") // of a shadow or candidate
		if !who.May(scope, name) {
			return denied(who, scope, name)
		}
	}
	return nil
}

func denied(who *door.Identity, scope door.Scope, rule string) *problem {
	d := who.Deny(scope, rule)
	return &problem{status: d.Status, detail: d.Detail}
}
