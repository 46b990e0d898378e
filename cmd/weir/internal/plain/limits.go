package plain

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weirflow/weir"
)

// RuleLimits are an example of each limit that a rule can hold.
var RuleLimits = []string{
	"60/m", "token bucket 10/s burst 20", "leaky bucket 5/s queue 10", "fixed window 100/1m", "first window 100/1m",
	"sliding window 1000/h", "sliding log 5/10s", "rate gate 2/s", "cycle 50/500ms", "quota 1000/month in Europe/Paris", "concurrency 20 lease 30s",
	"unlimited", "deny all",
}

// OneSubjectLimits are examples of the limits that rules refuse. A replay uses one such limit for each key.
var OneSubjectLimits = []string{"bursty 5/s over 1s", "warm up 5/s over 30s", "nginx limit_req 5/s burst 10 nodelay"}

// LimitForms show the syntax of a limit, and RuleForms that of a rule.
var (
	ruleLimitForms = []string{
		"a limit looks like: " + strings.Join(RuleLimits[:5], ", "),
		"or: " + strings.Join(RuleLimits[5:], ", ") + "; join several with 'and', like: 5/m and ban 1m up to 24h after 5/10m",
	}
	LimitForms = append(ruleLimitForms[:2:2], "or, alone: "+strings.Join(OneSubjectLimits, ", "))
	RuleForms  = append([]string{"a rule is NAME=LIMIT, like: login=token bucket 5/m burst 5"}, ruleLimitForms...)
)

// LimitError explains an error of weir.ParseRule or weir.ParseLimit in the value of a flag, and points at the
// unreadable word. The hint is the text that was probably meant, or the readable forms, so the message omits the names
// of the limits.
func LimitError(flag string, err error, forms []string) error {
	syntax, ok := errors.AsType[*weir.SyntaxError](err)
	if !ok {
		return Misuse(fmt.Errorf("%s: %s", flag, Message(err)), LimitHints(err, forms)...)
	}
	want, _, _ := strings.Cut(syntax.Want, " (")
	what := fmt.Sprintf("unexpected %q, want %s", syntax.Word, want)
	if syntax.Word == "" {
		what = "the text ends where " + want + " should follow"
	}
	if hints := pastedHints(syntax.Text); hints != nil {
		forms = hints
	} else if syntax.Meant != "" {
		forms = []string{"did you mean '" + Printable(syntax.Meant) + "'?"}
	}
	return Misuse(fmt.Errorf("%s: %s\n%s", flag, what, pointAt(syntax)), forms...)
}

// LimitHints returns the hint for a refused limit, or others for any other error.
func LimitHints(err error, others []string) []string {
	refused, ok := errors.AsType[*weir.LimitError](err)
	switch {
	case !ok:
		return others
	case refused.Field == "zone":
		return []string{zoneHint}
	case refused.Field == "day":
		return []string{"a month that is shorter than the day has its last day instead, so day 31 is the end of each; a year begins on a day that its month has"}
	}
	return []string{limitHint(refused.Code)}
}

// limitHint returns a hint for a limit that is readable but refused.
func limitHint(code weir.Code) string {
	switch code {
	case weir.CodeBounds:
		return "rates go up to 1000000000/s, periods up to 366d, counts up to 2^53"
	case weir.CodeMissing:
		return "give a limit, like: token bucket 5/s burst 1"
	case weir.CodeName:
		return RuleForms[0]
	case weir.CodeLimitCount:
		return "a rule holds 1 to 16 limits: move the others to a second rule"
	case weir.CodeAlone:
		return "a leaky bucket, or a sliding log that counts denied, stands alone: give it a rule of its own"
	case weir.CodeOneSubject:
		return "bursty, warm up and cycles from first use stand alone, in weir pace and weir replay: elsewhere choose another limit, like: token bucket 5/s burst 1"
	case weir.CodeDialect:
		return "nginx limit_req works in weir pace and weir replay, at a rate per second or minute; elsewhere use a leaky bucket, like: leaky bucket 5/s queue 10"
	case weir.CodeEngine:
		return "Redis holds counts up to 1e9 and whole microseconds exactly; the memory engine holds more"
	case weir.CodeBan:
		return "a ban stands once beside the limit whose refusals it counts, like: 5/m and ban 1m up to 24h after 5/10m"
	case weir.CodeHeld:
		return "charge: after counts a cost that is known after the work: give the slots a rule of their own"
	}
	return ""
}

// pointAt returns the text with a line of carets below the offending word.
func pointAt(e *weir.SyntaxError) string {
	at := min(max(e.Offset, 0), len(e.Text))
	if e.Word == "" {
		at = len(e.Text)
	}
	indent := strings.Repeat(" ", utf8.RuneCountInString(e.Text[:at]))
	carets := strings.Repeat("^", max(1, utf8.RuneCountInString(e.Word)))
	return "  " + Printable(e.Text) + "\n  " + indent + carets
}
