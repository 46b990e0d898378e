package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/door"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
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
		if name := inFile(requests[i].Rule); !who.May(scope, name) {
			return denied(who, scope, name)
		}
	}
	return nil
}

// mayTry leaves out the shadows and candidates of rules for which the caller may not ask.
func (a *API) mayTry(r *http.Request, o *rules.Outcome) {
	if a.who == nil || len(o.Beside) == 0 {
		return
	}
	who, scope := a.who(r), scopes[r.URL.Path]
	o.Beside = slices.DeleteFunc(o.Beside, func(q weir.Request) bool { return !who.May(scope, inFile(q.Rule)) })
}

// inFile returns the name that a rule has in its file, also for a shadow or candidate of it.
func inFile(rule *weir.Rule) string {
	name, _, _ := strings.Cut(rule.Name(), "~")
	return name
}

func denied(who *door.Identity, scope door.Scope, rule string) *problem {
	d := who.Deny(scope, rule)
	return &problem{status: d.Status, detail: d.Detail}
}
