package rules

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is said to testdata/errors.txt")

// Every fault is reported with its line, what was expected, and what was probably meant. With -update the test writes
// the messages, to be read before they are committed.
func TestEveryFaultOfAFileIsExplained(t *testing.T) {
	const file = "testdata/errors.txt"
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var written strings.Builder
	cases := strings.Split(string(content), "=== ")[1:]
	for _, c := range cases {
		name, rest, _ := strings.Cut(c, "\n")
		text, want, _ := strings.Cut(rest, "--- errors\n")
		config, err := Parse(Options{}, File{"weir.yaml", []byte(text)})
		got := "none\n"
		if err != nil {
			got = err.Error() + "\n"
		}
		written.WriteString("=== " + name + "\n" + text + "--- errors\n" + got)
		if !*update && got != want {
			t.Errorf("%s: got\n%swant\n%s", name, got, want)
		}
		if (config == nil) != (err != nil) || err == nil {
			t.Errorf("%s: config %v, error %v, want an error alone", name, config, err)
		}
	}
	if len(cases) < 60 {
		t.Errorf("%d faults are tried, want 60 at least", len(cases))
	}
	if *update {
		if err := os.WriteFile(file, []byte(written.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
