package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/top"
)

// The number of heavy keys of each kind in the answer: the default and the maximum.
const (
	usualTop = 10
	mostTop  = 128
)

// statsAnswer is the answer to GET /v1/stats.
type statsAnswer struct {
	*engineStats                     // nil if the engine keeps none
	Waiting      decide.WaitingStats `json:"waiting"`
	Reloads      *reloadStats        `json:"reloads,omitempty"` // nil without rules in files
}

// engineStats are the statistics of the engine.
type engineStats struct {
	Keys     int         `json:"keys"`
	Shared   int         `json:"shared"`
	MaxKeys  int         `json:"max_keys"`
	Bytes    int         `json:"bytes"`
	Evicted  uint64      `json:"evicted"`
	Overflow uint64      `json:"overflow"`
	Rules    []ruleStats `json:"rules"`
	Busiest  []top.Count `json:"busiest,omitzero"` // nil for callers without the scope admin, like Refused
	Refused  []top.Count `json:"refused,omitzero"`
}

type ruleStats struct {
	Rule      string `json:"rule"`
	Decisions uint64 `json:"decisions"`
	Refusals  uint64 `json:"refusals"`
	Overflow  uint64 `json:"overflow"`
	Bans      uint64 `json:"bans,omitzero"`
	Unnoted   uint64 `json:"unnoted,omitzero"`
}

// stats answers with rules and sums. Keys are personal data, so only callers with the scope admin get them.
func (a *API) stats(w http.ResponseWriter, r *http.Request, who asker) {
	n, p := readTop(r.URL.RawQuery)
	keys := who.May(auth.Admin, "")
	switch {
	case p != nil:
	case !who.May(auth.Metrics, ""):
		p = denied(who.Deny(auth.Metrics, ""))
	case n > 0 && !keys:
		p = denied(who.Deny(auth.Admin, ""))
	case n < 0:
		n = usualTop
	}
	if p != nil {
		writeProblem(w, p)
		return
	}
	answer := statsAnswer{Waiting: a.desk.Waiting()}
	if a.desk.InForce().Config != nil {
		answer.Reloads = a.reloads.stats()
	}
	if engine := a.desk.Memory(); engine != nil {
		answer.engineStats = statsOf(engine.Stats())
		if keys {
			answer.Busiest, answer.Refused = a.Keys.Busiest(n), a.Keys.Top("", top.Refused, n)
		}
	}
	body, _ := json.Marshal(answer) // numbers and strings always marshal
	writeJSON(w, append(body, '\n'))
}

func statsOf(s weir.MemoryStats) *engineStats {
	answer := &engineStats{
		Keys: s.Keys, Shared: s.Shared, MaxKeys: s.MaxKeys, Bytes: s.Bytes, Evicted: s.Evicted, Overflow: s.Overflow,
		Rules: make([]ruleStats, len(s.Rules)),
	}
	for i, rule := range s.Rules {
		answer.Rules[i] = ruleStats(rule)
	}
	return answer
}

// readTop reads the query of a URL, whose only field is the optional top. Without it, readTop returns -1.
func readTop(query string) (int, *problem) {
	fields, err := url.ParseQuery(query)
	if err != nil {
		return 0, badField("query", "is not URL-encoded")
	}
	for name := range fields {
		if name != "top" {
			return 0, badField("query", "has the field "+decide.Quote(name)+", not top")
		}
	}
	texts := fields["top"]
	switch len(texts) {
	case 0:
		return -1, nil
	case 1:
	default:
		return 0, badField("top", "occurs twice")
	}
	n, err := strconv.Atoi(texts[0])
	if err != nil || n < 0 || n > mostTop {
		return 0, badField("top", fmt.Sprintf("is %s, not a whole number from 0 to %d", decide.Quote(texts[0]), mostTop))
	}
	return n, nil
}
