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

// A file of some megabytes must not take all memory or all stack, which no program outlives.
func TestFilesThatAreTooMuchForTheParserAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"fields": {strings.Repeat("x: 1\n", maxFields+1), "is field 10001 of a block, want at most 10000"},
		"words":  {"rules:\n" + strings.Repeat("- a\n", maxTokens/2), "brings the words and signs of all files to more than 1000000"},
		"a line": {"rules: [" + strings.Repeat("a,", maxLine/2) + "]", "has 1048585 bytes in line 1, want at most 1048576"},
	} {
		_, err := Parse(Options{}, File{"weir.yaml", []byte(c.text)}, File{"good.yaml", []byte(ruled("5/m"))})
		if problems, ok := err.(Problems); !ok || len(problems) != 1 || !strings.Contains(problems[0].String(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	most := "rules:\n- {name: r, match: any, key: client, limit: 5/m}\n- name: q\n  match: any\n  key: path\n  limit: 5/m\n  keys:\n"
	for i := range maxFields {
		most += "    /" + weirCost(int64(i+1)) + ": 6/m\n"
	}
	if _, err := Parse(Options{}, File{"weir.yaml", []byte(strings.Repeat("# a comment\n", 2*maxFields) + most)}); err != nil {
		t.Errorf("%d limits of keys: %v", maxFields, err)
	}
}

func ruled(limit string) string { return "rules: [{name: r, match: any, limit: " + limit + "}]\n" }
