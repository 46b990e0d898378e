package main

import (
	"errors"
	"strings"
	"testing"

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

func TestEveryErrorIsPrintedWithAHint(t *testing.T) {
	plainError := errors.New("weir: take: first\nweir: second")
	for _, test := range []struct {
		err  error
		want string
	}{
		{plainError, "weir: take: first\nsecond\nhint: run "},
		{errorWithHint(plainError), "weir: take: first\nsecond\nhint: run "},
		{errorWithHint(plainError, "do this", "or that"), "weir: take: first\nsecond\nhint: do this\nhint: or that\n"},
	} {
		var out strings.Builder
		printError(&out, test.err)
		if !strings.HasPrefix(out.String(), test.want) {
			t.Errorf("%#v: got %q, want %q…", test.err, out.String(), test.want)
		}
	}
}
