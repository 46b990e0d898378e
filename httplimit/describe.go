package httplimit

import (
	"net/http"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

// Fields writes the header fields about limits for servers of other protocols, which ask their engine themselves. It is
// safe for concurrent use.
type Fields struct {
	format Headers
	sets   map[*weir.Rule]*front.Set
}

// NewFields returns the fields of rules in a format.
func NewFields(format Headers, rules ...*weir.Rule) *Fields {
	f := &Fields{format: format, sets: make(map[*weir.Rule]*front.Set, len(rules))}
	for _, r := range rules {
		f.sets[r] = &front.Set{Rule: r, Note: newPolicies(r)}
	}
	return f
}

// Add adds the fields of a decision on requests: those of the format, and Retry-After to a refusal. It takes longer for
// rules that NewFields has not seen.
func (f *Fields) Add(h http.Header, d weir.Decision, requests ...weir.Request) {
	if f.format == NoHeaders && d.Allowed {
		return
	}
	a := &ask{Decision: d, Requests: requests}
	for _, q := range requests {
		set := f.sets[q.Rule]
		if set == nil {
			set = &front.Set{Rule: q.Rule, Note: newPolicies(q.Rule)}
		}
		a.Sets = append(a.Sets, set)
	}
	again, _ := tells(a)
	writeFields(h, f.format, a, again)
	if refusal := tooMany(&d, binding(a)); !d.Allowed && refusal.RetryAfter > 0 {
		h[fieldRetryAfter] = []string{decimal(int64(refusal.RetryAfter / time.Second))}
	}
}
