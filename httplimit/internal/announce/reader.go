package announce

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// reader reads the fields of one answer.
type reader struct {
	h      http.Header
	now    time.Time // the server's clock if it is known, otherwise the local one
	quotas []Quota
}

// readDate measures instants against the server's own clock.
func (r *reader) readDate() {
	if date, ok := parseDate(r.h.Get("Date")); ok {
		r.now = date
	}
}

// field returns the values of a field joined as a list.
func (r *reader) field(name string) string {
	values := r.h[name]
	if len(values) == 1 {
		if len(values[0]) > maxField {
			return ""
		}
		return values[0]
	}
	joined := strings.Join(values, ", ")
	if len(joined) > maxField {
		return ""
	}
	return joined
}

// add adds a quota, unless there are too many. A quota with neither a remainder nor a policy says nothing.
func (r *reader) add(q Quota) {
	if q.Remaining < 0 && q.Limit < 1 && q.Reset < 0 || len(r.quotas) == MaxQuotas {
		return
	}
	r.quotas = append(r.quotas, q)
}

// named returns the quota of a name, or nil.
func (r *reader) named(name string) *Quota {
	i := slices.IndexFunc(r.quotas, func(q Quota) bool { return q.Name == name })
	if i < 0 {
		return nil
	}
	return &r.quotas[i]
}
