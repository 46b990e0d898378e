package screen

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

var example = Table{
	Indent: "  ",
	Columns: []Column{
		{Title: "limit"}, {Title: "admitted", Colour: Admitted}, {Title: "refused", Colour: Refused},
		{Title: "share", Rank: 1}, {Title: "wait p50", Rank: 2}, {Title: "p99", Rank: 2}, {Title: "", Colour: Refused, Rank: 3},
	},
	Rows: [][]string{
		{"token bucket 10/s burst 20", "1,000", "0", "0.00%", "0.00", "0.10", "██"},
		{"größtes Fenster 1/d", "7", "12,000", "99.00%"},
	},
}

func TestAPipeGetsTheWholeTableWithoutColours(t *testing.T) {
	const want = `  limit                       admitted  refused   share  wait p50   p99
  token bucket 10/s burst 20     1,000        0   0.00%      0.00  0.10  ██
  größtes Fenster 1/d                7   12,000  99.00%
`
	if got := (Screen{}).Table(example); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestANarrowTableOmitsColumnsByRankAndNamesThem(t *testing.T) {
	for columns, want := range map[int]string{
		80: "",
		71: "", // only the bars are missing, and they have no name
		70: "  (not shown in 70 columns: p99)",
		64: "  (not shown in 64 columns: wait p50, p99)",
		54: "  (not shown in 54 columns: share, wait p50, p99)",
		30: "  (not shown in 30 columns:\n   share, wait p50, p99)",
	} {
		got := strings.TrimSuffix((Screen{Columns: columns}).Table(example), "\n")
		if want != "" && !strings.HasSuffix(got, "\n"+want) || want == "" && strings.Contains(got, "not shown") {
			t.Errorf("at %d columns:\n%s\nwant the end %q", columns, got, want)
		}
	}
}

func TestNoLineIsWiderThanTheScreen(t *testing.T) {
	long := example
	long.Rows = append([][]string{{strings.Repeat("key ", 50), "1", "1,000,000", "3", "4", "5", strings.Repeat("█", 20)}}, long.Rows...)
	text := "  capacity    20: the largest cost that a fresh key admits.\n\nA larger cost is never admitted, in whatever way it is asked for.\n"
	for columns := 1; columns <= 200; columns++ {
		s := Screen{Columns: columns}
		for line := range strings.Lines(s.Table(example) + s.Table(long) + s.Wrap(text, 14)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > max(columns, 40) {
				t.Fatalf("%d runes on a screen of %d columns: %q", n, columns, line)
			}
		}
	}
}

func TestAWrappedTextKeepsItsWords(t *testing.T) {
	const text = "  burst       After a pause 20 requests go ahead at once.\nnever\n\n"
	const want = `  burst       After a pause 20
              requests go ahead
              at once.
never

`
	if got := (Screen{Columns: 32}).Wrap(text, 14); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for columns := range 100 {
		if got := (Screen{Columns: columns}).Wrap(text, 3); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(text), " ") {
			t.Errorf("at %d columns the words are %q", columns, got)
		}
	}
}

func TestColoursAreOnlyOnAScreenThatWantsThem(t *testing.T) {
	s := Screen{Columns: 80, Colour: true}
	if got, want := s.Paint("7", Refused), "\x1b[31m7\x1b[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := s.PaintRunes("a██░ ", map[rune]Colour{'█': Admitted, '░': Refused}), "a\x1b[32m██\x1b[0m\x1b[31m░\x1b[0m "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	plain := Screen{Columns: 80}
	painted := s.Table(example)
	for _, want := range []string{"  \x1b[32m1,000\x1b[0m        0  ", "\x1b[31m12,000\x1b[0m", "\x1b[31m██\x1b[0m"} {
		if !strings.Contains(painted, want) {
			t.Errorf("the table has no %q:\n%s", want, painted)
		}
	}
	for _, c := range []Colour{Admitted, Refused} {
		painted = strings.ReplaceAll(painted, "\x1b["+string(c)+"m", "")
	}
	if painted = strings.ReplaceAll(painted, "\x1b[0m", ""); painted != plain.Table(example) {
		t.Errorf("colours change the text:\n%s\nwant\n%s", painted, plain.Table(example))
	}
	if got := fmt.Sprint(plain.Paint("7", Refused), plain.PaintRunes("░", map[rune]Colour{'░': Refused})); got != "7░" {
		t.Errorf("without colours: %q", got)
	}
}
