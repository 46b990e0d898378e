package replay

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/phrase"
)

// Target is what suggested limits must do to a log. Create it with [ParseTarget].
type Target struct {
	text    string
	kind    targetKind
	percent string   // as written: 0.1%
	share   fraction // the same
	rate    weir.Rate
}

type targetKind int

const (
	refuseRequests targetKind = iota // a share of the requests
	refuseClients                    // a share of the clients, at least once
	spareClients                     // the clients below a percentile are never refused
	admitInAll                       // what all clients get together
)

// ParseTarget reads the text form of a target:
//
//	refuse 0.1% of requests    refuse no more than this share of the requests; "of requests" may be left out
//	refuse 0.1% of clients     refuse anything to no more than this share of the clients
//	spare 99.9%                refuse nothing to the clients below this percentile of clients by units
//	at most 200/s in all       admit no more than this within any second of the clock, of all clients together
//
// A client is a key of the log. The error is a [*weir.SyntaxError] that points at the word.
func ParseTarget(text string) (Target, error) {
	t := Target{text: text}
	r := phrase.New(text)
	switch r.Next(`refuse, spare or "at most"`, func(word string) bool { return word == "refuse" || word == "spare" || word == "at" }) {
	case "refuse":
		t.percent, t.share = shareOf(r)
		if r.Accept("of") && r.Next("requests or clients", func(word string) bool { return word == "requests" || word == "clients" }) == "clients" {
			t.kind = refuseClients
		}
	case "spare":
		t.kind = spareClients
		t.percent, t.share = shareOf(r)
	case "at":
		t.kind = admitInAll
		r.Keyword("most", `"most"`)
		t.rate = r.Rate()
		r.Keyword("in", `"in all"`)
		r.Keyword("all", `"all"`)
	}
	if r.Err == nil && !r.Ended() {
		r.Keyword("", "the end")
	}
	return t, r.Err
}

// fraction is a share above 0, up to 1. No share is the zero value.
type fraction struct{ part, whole uint64 }

// decimals are how many digits a percentage may have after its point, zeros at the end aside.
const decimals = 16

// shareOf reads a percentage exactly.
func shareOf(r *phrase.Reader) (percent string, share fraction) {
	percent = r.Next("a percentage such as 10%, up to 100%", func(word string) bool {
		digits, found := strings.CutSuffix(word, "%")
		whole, after, _ := strings.Cut(digits, ".")
		after = strings.TrimRight(after, "0")
		if !found || whole+after == "" || len(digits) > 30 || len(after) > decimals || strings.Trim(whole+after, "0123456789") != "" {
			return false
		}
		part, err := strconv.ParseUint(whole+after+strings.Repeat("0", decimals-len(after)), 10, 64)
		share = fraction{part, 1e18}
		return err == nil && 0 < part && part <= share.whole
	})
	return percent, share
}

// String returns the text of the target.
func (t Target) String() string { return t.text }

// Meaning says the target in words.
func (t Target) Meaning() string {
	switch t.kind {
	case refuseRequests:
		return fmt.Sprintf("refuse no more than %s of the requests", t.percent)
	case refuseClients:
		return fmt.Sprintf("refuse anything to no more than %s of the clients", t.percent)
	case spareClients:
		return fmt.Sprintf("refuse nothing to the %s of the clients that ask for least", t.percent)
	}
	return fmt.Sprintf("admit no more than %s within any %s of the clock, of all clients together", grouped(t.rate.Count), t.span())
}

// span names the time within which the peak of the target counts.
func (t Target) span() string {
	period := t.window()
	if name, ok := spans[period]; ok {
		return name
	}
	_, text, _ := strings.Cut(weir.Per(1, period).String(), "/")
	return text
}

var spans = map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour"}

// window returns the time within which the peak counts: a second, unless the target names another.
func (t Target) window() time.Duration {
	if t.kind == admitInAll {
		return t.rate.Period
	}
	return time.Second
}

// part returns the share of n things, rounded down.
func (t Target) part(n int64) int64 {
	high, low := bits.Mul64(uint64(n), t.share.part)
	whole, _ := bits.Div64(high, low, t.share.whole)
	return int64(whole)
}

// spared returns the number of clients below the percentile: the share of n, rounded up.
func (t Target) spared(n int64) int64 {
	rest := fraction{t.share.whole - t.share.part, t.share.whole}
	return n - Target{share: rest}.part(n)
}

// grouped writes a count with commas: 1,234,567.
func grouped(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
