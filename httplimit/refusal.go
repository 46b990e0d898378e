package httplimit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

// Refusal is the answer to a request that is not passed on.
type Refusal struct {
	// Status is 429 for a limit, 400 for a missing key, and 503 if the engine could not decide.
	Status int
	// Rule is the rule that refuses. It is empty if the engine could not decide.
	Rule string
	// Policies name the limits that refuse, by the names in the header fields: the rule itself, or its limit by number, as
	// in "login-2".
	Policies []string
	// RetryAfter is in whole seconds, as in the header field; 0 if there is none.
	RetryAfter time.Duration
	// ResetAt is the end of the window of the quota that refuses, as a time of its zone. It is zero for other limits.
	ResetAt time.Time
	// Message, if it is not empty, replaces the usual sentence in the body.
	Message string
	// Decision is the refusal of a limit, and Err says why the engine could not decide.
	Decision weir.Decision
	Err      error
}

// refusalOf returns the refusal of a request that does not pass.
func refusalOf(a *ask) Refusal {
	switch a.Outcome {
	case front.Limited:
		return tooMany(&a.Decision, binding(&a.Decision, a.Requests))
	case front.KeyMissing:
		return Refusal{Status: http.StatusBadRequest, Rule: a.Missing.Rule.Name()}
	}
	return Refusal{Status: http.StatusServiceUnavailable, RetryAfter: time.Second, Err: a.Err}
}

// RefusalOf returns the refusal of requests by a limit, for servers that ask their engine themselves: its Write answers with it,
// and [AddFields] adds its header fields.
func RefusalOf(d weir.Decision, requests ...weir.Request) Refusal {
	return tooMany(&d, binding(&d, requests))
}

// tooMany returns the refusal by a limit.
func tooMany(d *weir.Decision, p *policy) Refusal {
	f := Refusal{Status: http.StatusTooManyRequests, Rule: d.Rule, Decision: *d}
	if p != nil {
		f.Policies = []string{p.name}
		f.ResetAt = front.ResetAt(p.limit, d.RetryAfter)
	}
	switch {
	case p != nil && p.held:
		f.RetryAfter = time.Second // slots come back when handlers return, at an unknown time
	case d.RetryAfter != weir.Never:
		f.RetryAfter = max(time.Duration(seconds(d.RetryAfter)), 1) * time.Second
		if f.RetryAfter < 0 { // hundreds of years
			f.RetryAfter = 0
		}
	}
	return f
}

// answer writes a refusal, or has a function of the program do so.
func (f Refusal) answer(w http.ResponseWriter, r *http.Request, write func(http.ResponseWriter, *http.Request, Refusal)) {
	h := w.Header()
	if f.RetryAfter > 0 {
		h[fieldRetryAfter] = []string{decimal(int64(f.RetryAfter / time.Second))}
	}
	h.Set("Cache-Control", "no-store")
	if write != nil {
		write(w, r, f)
		return
	}
	f.Write(w, r)
}

// problem is a document of RFC 9457, with the types of the RateLimit draft.
type problem struct {
	Type     string   `json:"type,omitempty"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies,omitempty"`
	ResetAt  string   `json:"reset_at,omitempty"`
}

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// problemType returns the type of a status.
var problemType = map[int]string{
	http.StatusTooManyRequests:    problemTypes + "quota-exceeded",
	http.StatusServiceUnavailable: problemTypes + "temporary-reduced-capacity",
}

// Write writes the status and a body: a problem document, or plain text for a client that prefers text, such as a
// browser. An Options.Refuse function can call it for refusals that it does not answer itself.
func (f Refusal) Write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Del("Content-Length")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
	if prefersText(r.Header["Accept"]) {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(f.Status)
		fmt.Fprintf(w, "%s. %s\n", http.StatusText(f.Status), f.detail())
		return
	}
	body, _ := json.Marshal(problem{ // a struct of strings never fails
		Type:     problemType[f.Status],
		Title:    http.StatusText(f.Status),
		Status:   f.Status,
		Detail:   f.detail(),
		Violated: f.Policies,
		ResetAt:  f.resetAt(),
	})
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(f.Status)
	_, _ = w.Write(append(body, '\n')) // the client may have left
}

// resetAt returns ResetAt in RFC 3339, or "".
func (f *Refusal) resetAt() string {
	if f.ResetAt.IsZero() {
		return ""
	}
	return f.ResetAt.Format(time.RFC3339)
}

// detail returns a sentence or two for the person who reads the answer.
func (f *Refusal) detail() string {
	if f.Message != "" {
		return f.Message
	}
	switch f.Status {
	case http.StatusBadRequest:
		return fmt.Sprintf("The limit %q needs a key that the request does not have.", f.Rule)
	case http.StatusServiceUnavailable:
		return "The limits cannot be checked at the moment."
	}
	name := f.Rule
	if len(f.Policies) > 0 {
		name = strings.Join(f.Policies, ", ")
	}
	why := front.Why(name, &f.Decision, f.RetryAfter == 0)
	text := strings.ToUpper(why[:1]) + why[1:] + "."
	switch s := int64(f.RetryAfter / time.Second); s {
	case 0:
		return text
	case 1:
		return text + " Retry in 1 second."
	default:
		return text + fmt.Sprintf(" Retry in %d seconds.", s)
	}
}
