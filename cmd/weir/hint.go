package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirflow/weir"
)

// errorWithHint adds hints to err: at least one line that says what to do next. The program exits with code 1.
func errorWithHint(err error, hints ...string) error {
	return &hintedError{err: err, hints: hints}
}

// usageWithHint adds hints to an error of the command line: exit code 2.
func usageWithHint(err error, hints ...string) error {
	return &hintedError{err: err, hints: hints, usage: true}
}

// ruleLimits are an example of each limit that a rule can hold.
var ruleLimits = []string{
	"60/m", "token bucket 10/s burst 20", "leaky bucket 5/s queue 10", "fixed window 100/1m", "sliding window 1000/h",
	"sliding log 5/10s", "rate gate 2/s", "cycle 50/500ms", "concurrency 20 lease 30s",
	"unlimited", "deny all",
}

// oneSubjectLimits are examples of the limits that rules refuse. A replay uses one such limit for each key.
var oneSubjectLimits = []string{"bursty 5/s over 1s", "warm up 5/s over 30s", "nginx limit_req 5/s burst 10 nodelay"}

// limitForms show the syntax of a limit, and ruleForms that of a rule.
var (
	ruleLimitForms = []string{
		"a limit looks like: " + strings.Join(ruleLimits[:5], ", "),
		"or: " + strings.Join(ruleLimits[5:], ", ") + "; join several with 'and'",
	}
	limitForms = append(ruleLimitForms[:2:2], "or, alone: "+strings.Join(oneSubjectLimits, ", "))
	ruleForms  = append([]string{"a rule is NAME=LIMIT, like: login=token bucket 5/m burst 5"}, ruleLimitForms...)
)

// limitTextError explains an error of weir.ParseRule or weir.ParseLimit in the value of a flag, and points at the
// unreadable word. The forms show what is readable, so the message omits the names of the limits.
func limitTextError(flag string, err error, forms []string) error {
	syntax, ok := errors.AsType[*weir.SyntaxError](err)
	if !ok {
		return usageWithHint(fmt.Errorf("%s: %s", flag, plain(err)), limitHints(err, forms)...)
	}
	want, _, _ := strings.Cut(syntax.Want, " (")
	what := fmt.Sprintf("unexpected %q, want %s", syntax.Word, want)
	if syntax.Word == "" {
		what = "the text ends where " + want + " should follow"
	}
	if syntax.Meant != "" {
		forms = append([]string{"did you mean '" + printable(syntax.Meant) + "'?"}, forms...)
	}
	return usageWithHint(fmt.Errorf("%s: %s\n%s", flag, what, pointAt(syntax)), forms...)
}

// limitHints returns the hint for a refused limit, or others for any other error.
func limitHints(err error, others []string) []string {
	if refused, ok := errors.AsType[*weir.LimitError](err); ok {
		return []string{limitHint(refused.Code)}
	}
	return others
}

// limitHint returns a hint for a limit that is readable but refused.
func limitHint(code weir.Code) string {
	switch code {
	case weir.CodeBounds:
		return "rates go up to 1000000000/s, periods up to 366d, counts up to 2^53"
	case weir.CodeMissing:
		return "give a limit, like: token bucket 5/s burst 1"
	case weir.CodeName:
		return ruleForms[0]
	case weir.CodeLimitCount:
		return "a rule holds 1 to 16 limits: move the others to a second rule"
	case weir.CodeAlone:
		return "a leaky bucket, or a sliding log that counts denied, stands alone: give it a rule of its own"
	case weir.CodeOneSubject:
		return "bursty and warm up limit one subject: use weir pace without --key or with --fair, or choose another limit, like: token bucket 5/s burst 1"
	case weir.CodeDialect:
		return "nginx limit_req works in weir pace and weir replay, at a rate per second or minute; elsewhere use a leaky bucket, like: leaky bucket 5/s queue 10"
	case weir.CodeEngine:
		return "Redis holds counts up to 1e9 and whole microseconds exactly; the memory engine holds more"
	case weir.CodeNoPace:
		return "choose a limit that admits at a rate, like: token bucket 5/s burst 1, rate gate 2/s"
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
	return "  " + printable(e.Text) + "\n  " + indent + carets
}

// printable keeps one column per rune, so that carets stand where they should
// and no control character reaches the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// flagError rewrites an error of the flag parser for users who do not know Go.
func flagError(err error) error {
	reason, what := errors.Unwrap(err), ""
	switch {
	case reason == nil:
		return err
	case errors.Is(reason, strconv.ErrSyntax):
		what = "not a whole number"
	case errors.Is(reason, strconv.ErrRange):
		what = "above 64 bits"
	case strings.HasPrefix(reason.Error(), "time: "):
		what = "not a duration like 500ms, 10s or 1h30m"
	default:
		return err
	}
	return errors.New(strings.Replace(err.Error(), reason.Error(), what, 1))
}

// shortDuration returns "1m" for a minute, where Go prints "1m0s".
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// hintedError is an error with its hints.
type hintedError struct {
	err   error
	hints []string
	usage bool
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

// printError writes the error as "weir: …" and each hint as "hint: …". An error without a hint gets the general one.
func printError(w io.Writer, err error) {
	fmt.Fprintf(w, "weir: %s\n", plain(err))
	hinted, _ := errors.AsType[*hintedError](err)
	if hinted == nil || len(hinted.hints) == 0 {
		fmt.Fprintln(w, "hint: run 'weir --help', or 'weir COMMAND --help' for the flags and examples of one command")
		return
	}
	for _, h := range hinted.hints {
		fmt.Fprintf(w, "hint: %s\n", h)
	}
}

// plain returns the message with the library's prefix removed from every line.
func plain(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "weir: ")
	}
	return strings.Join(lines, "\n")
}
