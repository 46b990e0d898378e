package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// appendDecision writes the answer to a request. It omits a lease of 0, an empty token, the limit that refuses if none
// does, and the units where no limit decides, as by a policy while the engine is away.
func appendDecision(b []byte, d weir.Decision, lease time.Duration, token string) []byte {
	b = append(b, `{"allowed":`...)
	b = strconv.AppendBool(b, d.Allowed)
	b = append(b, `,"rule":`...)
	b = appendText(b, d.Rule)
	b = append(b, `,"key":`...)
	b = appendText(b, d.Key)
	if decide.Limited(d) {
		b = append(b, `,"limit":`...)
		b = strconv.AppendInt(b, d.Limit, 10)
		b = append(b, `,"remaining":`...)
		b = strconv.AppendInt(b, d.Remaining, 10)
	}
	b = append(b, `,"retry_after":`...)
	b = appendSeconds(b, d.RetryAfter)
	b = append(b, `,"reset_after":`...)
	b = appendSeconds(b, d.ResetAfter)
	b = append(b, `,"delay":`...)
	b = appendSeconds(b, d.Delay)
	if d.Cause != 0 {
		b = append(b, `,"refused_by":`...)
		b = strconv.AppendUint(b, uint64(d.RefusedBy), 10)
		b = append(b, `,"cause":`...)
		b = appendText(b, d.Cause.String())
	}
	if lease > 0 {
		b = append(b, `,"lease":`...)
		b = appendSeconds(b, lease)
	}
	if token != "" {
		b = append(b, `,"token":`...)
		b = appendText(b, token)
	}
	return append(b, "}\n"...)
}

// tell adds the answer to some requests: the decision, the rule that paid in place of another, the text of the rule
// that refuses, what was estimated, and the end of a quota's window.
func (a *API) tell(c *call, made decide.Made, lease time.Duration, token string) {
	d := made.Decision
	end, quota := a.desk.QuotaEnd(d, made.On)
	d.Limit = a.desk.LimitOf(d, made.On)
	c.answer = appendDecision(c.answer, d, lease, token)
	text := ""
	if !d.Allowed {
		text = c.force.Message(d.Rule)
	}
	if text == "" && !quota && c.held == nil && made.PaidBy == "" {
		return
	}
	c.answer = c.answer[:len(c.answer)-len("}\n")]
	if made.PaidBy != "" {
		c.answer = appendText(append(c.answer, `,"paid_by":`...), made.PaidBy)
	}
	if text != "" {
		c.answer = appendText(append(c.answer, `,"message":`...), text)
	}
	if quota {
		c.answer = append(end.AppendFormat(append(c.answer, `,"reset_at":"`...), time.RFC3339), '"')
	}
	if c.held != nil {
		c.answer = appendHeld(c.answer, c.held)
	}
	c.answer = append(c.answer, "}\n"...)
}

// appendHeld adds the units that a reservation holds of each request.
func appendHeld(b []byte, held []weir.Request) []byte {
	b = append(b, `,"held":[`...)
	for i, q := range held {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, q.Cost, 10)
	}
	return append(b, ']')
}

// appendSeconds writes a duration of at least 0 in seconds, with exactly as many decimals as it needs. It writes
// Never as null.
func appendSeconds(b []byte, d time.Duration) []byte {
	if d == weir.Never {
		return append(b, "null"...)
	}
	b = strconv.AppendInt(b, int64(d/time.Second), 10)
	rest := int64(d % time.Second)
	if rest == 0 {
		return b
	}
	b = append(b, '.')
	for digit := int64(time.Second / 10); rest > 0; digit /= 10 {
		b = append(b, byte('0'+rest/digit))
		rest %= digit
	}
	return b
}

// appendText writes a JSON string. It replaces bytes that are not UTF-8, which only the name of a rule can contain.
func appendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// Header values, shared by all answers. net/http only reads them.
var (
	typeJSON    = []string{"application/json"}
	typeProblem = []string{"application/problem+json"}
)

func writeJSON(w http.ResponseWriter, body []byte) {
	w.Header()["Content-Type"] = typeJSON
	_, _ = w.Write(body) // an error means that the client has gone
}

// problem is an error in the form of RFC 9457. The field names the faulty part of the request: "requests[1].cost",
// "body", a header, or nothing.
type problem struct {
	status int
	field  string
	detail string
	// failed is the error of the engine. It says whether the cost was counted; without an engine's error nothing was.
	failed error
}

// statusLeft is the status in logs and metrics of a request whose client has left. nginx has it, too.
const statusLeft = 499

// hasLeft returns the problem of a client that has left before the decision. Nobody reads it.
func hasLeft() *problem {
	return &problem{status: statusLeft, detail: "the client has left before the decision, and nothing was admitted"}
}

func (p *problem) Error() string { return p.detail }

// badField returns the problem of a faulty field.
func badField(field, reason string) *problem {
	return &problem{status: http.StatusBadRequest, field: field, detail: field + " " + reason}
}

func writeProblem(w http.ResponseWriter, p *problem) {
	if p.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	auth.Denied{Status: p.status}.Challenge(w.Header())
	w.Header()["Content-Type"] = typeProblem
	w.WriteHeader(p.status)
	_, _ = w.Write(appendProblem(nil, p))
}

func appendProblem(b []byte, p *problem) []byte {
	b = append(b, `{"type":"about:blank","title":`...)
	b = appendText(b, http.StatusText(p.status))
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(p.status), 10)
	b = append(b, `,"counted":`...)
	b = appendText(b, weir.WasCounted(p.failed).String())
	b = append(b, `,"detail":`...)
	b = appendText(b, p.detail)
	if p.field != "" {
		b = append(b, `,"field":`...)
		b = appendText(b, p.field)
	}
	return append(b, "}\n"...)
}
