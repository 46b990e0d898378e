package cli

import (
	"errors"
	"strings"
	"testing"
)

func TestEveryErrorIsPrintedWithAHint(t *testing.T) {
	plainError := errors.New("weir: take: first\nweir: second")
	for _, test := range []struct {
		err  error
		want string
	}{
		{plainError, "weir: take: first\nsecond\nhint: run "},
		{Fail(plainError), "weir: take: first\nsecond\nhint: run "},
		{Fail(plainError, "do this", "or that"), "weir: take: first\nsecond\nhint: do this\nhint: or that\n"},
	} {
		var out strings.Builder
		Report(&out, test.err)
		if !strings.HasPrefix(out.String(), test.want) {
			t.Errorf("%#v: got %q, want %q…", test.err, out.String(), test.want)
		}
	}
}
