package rules

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// compareInPieces parses a file as a whole and in pieces. What is said of a fault may differ unless it is to be the same.
func compareInPieces(t *testing.T, name, text string, same bool) {
	t.Helper()
	files := []File{{"weir.yaml", []byte(text)}}
	whole, wholeErr := parseFiles(Options{}, len(text)+1, files)
	apart, apartErr := parseFiles(Options{}, 0, files)
	if (wholeErr == nil) != (apartErr == nil) || same && fmt.Sprint(wholeErr) != fmt.Sprint(apartErr) {
		t.Fatalf("%s: in pieces, got\n%v\nwant\n%v", name, apartErr, wholeErr)
	}
	if wholeErr != nil {
		return
	}
	if changes := Diff(whole, apart); len(changes) > 0 {
		t.Fatalf("%s: in pieces, rules differ by %+v", name, changes)
	}
	for i, r := range whole.Rules {
		if other := apart.Rules[i]; other.Name != r.Name || other.Line != r.Line || !reflect.DeepEqual(other.places, r.places) {
			t.Fatalf("%s: in pieces, rule %d is %s in line %d with %+v, want %s in line %d with %+v", name, i, other.Name, other.Line, other.places, r.Name, r.Line, r.places)
		}
	}
}

func TestAFileInPiecesIsTheSameFile(t *testing.T) {
	faults, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../../../../docs/reference/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range strings.Split(string(faults), "=== ")[1:] {
		name, rest, _ := strings.Cut(c, "\n")
		text, _, _ := strings.Cut(rest, "--- errors\n")
		compareInPieces(t, name, text, true)
	}
	for i, example := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(document), -1) {
		compareInPieces(t, fmt.Sprintf("example %d", i), example[1], true)
	}
	compareInPieces(t, "many", many(50), true)
}

// Files are drawn line by line, from what a list of rules and the text around it may have.
func TestAFileOfDrawnLinesInPiecesIsTheSameFile(t *testing.T) {
	lines := []string{
		"rules:", "rules: # all", "default: deny", "attributes: [plan]", "", "# text", "  # text", "- name: a", "  - name: a", "  - name: b", "-", "  -",
		"    match: any", "    limit: 5/m", "    key: client", "    message: |", "      - name: c", "    message: \"a", "  b\"", "    match: {path: [", "  - /a]}", "  limit: 5/m", "  match: any",
		"---", "  - {name: c, match: any, deny: true}", "  - - name: d", "    message: >-", "     text", "\t- name: e", "   - name: f", "    name: *a", "  - &a",
	}
	agreed := 0
	for seed := range randtest.Seeds(t, 1000, 3000) {
		r := rand.New(rand.NewPCG(seed, 45))
		text := "rules:\n"
		for range 2 + r.IntN(12) {
			if r.IntN(3) > 0 {
				text += fmt.Sprintf("  - name: r%d\n    match: any\n    key: client\n    limit: 5/m\n", r.IntN(20))
			} else {
				text += lines[r.IntN(len(lines))] + "\n"
			}
		}
		compareInPieces(t, fmt.Sprintf("seed %d:\n%s", seed, text), text, false)
		if _, err := Parse(Options{}, File{"weir.yaml", []byte(text)}); err == nil {
			agreed++
		}
	}
	if agreed < 20 {
		t.Errorf("%d files without a fault were drawn, want 20 at least", agreed)
	}
}

// What was parsed of a rule is dropped before the next, so the parser holds few of the million tokens of a file at a time.
func TestAFileNearAMillionTokensTakesLittleMoreThanItsRules(t *testing.T) {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "  - name: r%d\n    match: {path: [%s/%d]}\n    key: client\n    limit: 10/s\n", i, strings.Repeat("/a, ", 30), i)
	}
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	rules := 0
	_, err := Parse(Options{Check: func(...*weir.Rule) error {
		if rules++; rules == 5000 {
			runtime.GC()
			runtime.ReadMemStats(&during)
		}
		return nil
	}}, File{"weir.yaml", []byte(text.String())})
	if err != nil {
		t.Fatal(err)
	}
	if got := (during.HeapAlloc - before.HeapAlloc) >> 20; got > 90 {
		t.Errorf("half of the file takes %d MiB, want 90 at most", got)
	}
}
