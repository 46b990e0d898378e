package pace

import (
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// Each form of pace is one that it reads, and the forms show every limit that it takes.
func TestPaceFormsShowEveryLimit(t *testing.T) {
	for _, limit := range limits {
		if _, err := (&options{atOnce: 1}).parse([]string{limit}, nil); err != nil {
			t.Errorf("%s: %v", limit, err)
		}
	}
	_, err := weir.ParseLimit("x 1/s")
	syntax := err.(*weir.SyntaxError)
	_, list, _ := strings.Cut(strings.TrimSuffix(syntax.Want, ")"), "(")
	for limit := range strings.SplitSeq(list, ", ") {
		refused := strings.Contains("concurrency, unlimited, deny all, ban", limit)
		if strings.Contains(strings.Join(forms, "\n"), limit) == refused {
			t.Errorf("paceForms with an example of %s: %v, want %v", limit, refused, !refused)
		}
	}
}

// Each refusal of pace has the hint of its own kind.
func TestLimitsThatPaceRefusesSayWhatToDo(t *testing.T) {
	for limit, want := range map[string]string{
		"2/s and bursty 5/s over 1s": "bursty, warm up and cycles from first use stand alone, in weir pace and weir replay",
		"concurrency 5":              "choose a limit that admits at a rate",
		"5/s and ban 1m after 5/10m": "choose a limit that admits at a rate",
	} {
		_, err := (&options{key: "host", atOnce: 1}).parse([]string{limit}, nil)
		var text strings.Builder
		cli.Report(&text, err)
		if !strings.Contains(text.String(), "\nhint: "+want) {
			t.Errorf("weir pace --key host '%s': got %q, want the hint %q", limit, text.String(), want)
		}
	}
}
