package fetch

import (
	"strings"
	"time"
)

// Outcome says how a URL ended.
type Outcome string

const (
	Fetched Outcome = "fetched" // the body was read
	Skipped Outcome = "skipped" // by a rule: robots.txt, a private address, a bound
	Refused Outcome = "refused" // by the server, with a status that another attempt would not change
	Failed  Outcome = "failed"  // after several attempts, or for now; a later run may succeed
)

// Result is the end of one URL.
type Result struct {
	URL     string    `json:"url"`             // as listed or followed, in canonical form
	Final   string    `json:"final,omitempty"` // the last URL, if it was redirected
	Outcome Outcome   `json:"outcome"`
	Reason  string    `json:"reason,omitempty"` // why it was not fetched
	Status  int       `json:"status,omitempty"` // status of the last answer
	Type    string    `json:"type,omitempty"`   // the Content-Type
	Bytes   int64     `json:"bytes,omitempty"`  // bytes of the body
	Depth   int       `json:"depth,omitempty"`
	Tries   int       `json:"tries,omitempty"`
	Started time.Time `json:"started"`           // when the last request was sent, or when the URL ended without one
	Seconds float64   `json:"seconds,omitempty"` // from Started to the end, in whole milliseconds
	// Links are the links that Page.Follow accepted.
	Links []string `json:"links,omitempty"`
	// Err is the error behind the reason, if there is one.
	Err error `json:"-"`
}

// maxText bounds texts in a result that a server chooses.
const maxText = 1 << 10

// shorten cuts off a long text.
func shorten(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}
