package plain

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestCaretsStandBelowTheWord(t *testing.T) {
	for _, test := range []struct {
		text   string
		offset int
		word   string
		want   string
	}{
		{"token bukket 1/s", 6, "bukket", "  token bukket 1/s\n        ^^^^^^"},
		{"bücket é 1/s", 8, "é", "  bücket é 1/s\n         ^"},
		{"token\tx", 6, "x", "  token x\n        ^"},
		{"token \x1b[2J", 6, "\x1b[2J", "  token \ufffd[2J\n        ^^^^"},
		{"token", 5, "", "  token\n       ^"},
		{"token", 99, "", "  token\n       ^"},
	} {
		got := pointAt(&weir.SyntaxError{Text: test.text, Offset: test.offset, Word: test.word})
		if got != test.want {
			t.Errorf("%q, byte %d:\ngot\n%s\nwant\n%s", test.text, test.offset, got, test.want)
		}
	}
}

// TestFormsShowEveryLimit compares the examples of the hints with the library's list of limits.
func TestFormsShowEveryLimit(t *testing.T) {
	_, err := weir.ParseLimit("x 1/s")
	syntax, ok := errors.AsType[*weir.SyntaxError](err)
	if !ok {
		t.Fatalf("x 1/s: got %v, want a syntax error", err)
	}
	_, list, _ := strings.Cut(strings.TrimSuffix(syntax.Want, ")"), "(")
	for _, test := range []struct {
		name, forms string
		without     string // a limit that the form refuses
	}{
		{"ruleForms", strings.Join(RuleForms, "\n"), "bursty, warm up, nginx limit_req"},
		{"limitForms", strings.Join(LimitForms, "\n"), ""},
	} {
		for _, limit := range strings.Split(list, ", ") {
			if want := !slices.Contains(strings.Split(test.without, ", "), limit); strings.Contains(test.forms, limit) != want {
				t.Errorf("%s with an example of %s: %v, want %v", test.name, limit, !want, want)
			}
		}
	}
}

func TestFormsCanBeRead(t *testing.T) {
	for _, limit := range RuleLimits {
		if _, err := weir.ParseRule("r=" + limit); err != nil {
			t.Error(err)
		}
	}
	for _, limit := range OneSubjectLimits {
		if _, err := weir.ParseLimit(limit); err != nil {
			t.Error(err)
		}
	}
}

// Each refusal has the hint of its own kind.
func TestRefusedLimitsSayWhatToDo(t *testing.T) {
	for text, want := range map[string]weir.Code{
		"=token bucket 1/s":                           weir.CodeName,
		"r=warm up 5/s over 4s":                       weir.CodeOneSubject,
		"r=leaky bucket 1/s and fixed window 1/s":     weir.CodeAlone,
		"r=nginx limit_req 5/s":                       weir.CodeDialect,
		"r=token bucket 2000000000/s":                 weir.CodeBounds,
		"r=" + strings.Repeat("1/s and ", 16) + "1/s": weir.CodeLimitCount,
	} {
		_, err := weir.ParseRule(text)
		hinted, ok := errors.AsType[*hintedError](LimitError("--rule", err, RuleForms))
		if !ok || len(hinted.hints) != 1 || hinted.hints[0] != limitHint(want) {
			t.Errorf("%s: got %+v, want the hint for %q", text, hinted, want)
		}
	}
}

func TestEveryCodeHasAHintOfItsOwn(t *testing.T) {
	seen := map[string]weir.Code{}
	code := weir.Code(1)
	for ; code.String() != ""; code++ {
		hint := limitHint(code)
		if other, known := seen[hint]; hint == "" || known {
			t.Errorf("the code %q has the hint %q, which that of %q is too; want one of its own", code, hint, other)
		}
		seen[hint] = code
	}
	if code < 2 {
		t.Error("the library names no codes")
	}
}

func TestTimesToWaitAreRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "1ms", 406590445: "407ms", 999*time.Millisecond + 1: "1s", 59_818_814_905: "59.9s", time.Minute: "1m", time.Hour - 1: "1h",
	} {
		if got := Wait(d); got != want {
			t.Errorf("%d ns: got %s, want %s", d, got, want)
		}
	}
}

func TestTimesArePrintedWithoutZeroParts(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", time.Minute: "1m", time.Hour: "1h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", 100 * time.Millisecond: "100ms", -time.Minute: "-1m", 20 * time.Minute: "20m",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%d ns: got %s, want %s", d, got, want)
		}
	}
}
