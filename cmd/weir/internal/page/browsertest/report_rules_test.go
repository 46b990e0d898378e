package browsertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/internal/replay"
)

const someRules = `rules:
  - {name: pages, match: {path: /*}, key: client, limit: 20/m burst 30}
  - {name: blog, match: {path: /blog/*}, key: client, limit: fixed window COUNT/1m, candidate: fixed window 5/1m}
  - {name: banned, match: {client: 65.55.0.0/16}, deny: true}
  - {name: api, match: {path: /presentations/*}, key: header.x-api-key, limit: 1/h}
  - {name: everything, match: any, limit: sliding window 100/1m, shadow: true}
`

func TestTheNumbersOfAReportOfRulesAreThoseOfTheJSON(t *testing.T) {
	folder := t.TempDir()
	files := []string{filepath.Join(folder, "old.yaml"), filepath.Join(folder, "new.yaml")}
	for i, count := range []string{"10", "6"} {
		if err := os.WriteFile(files[i], []byte(strings.ReplaceAll(someRules, "COUNT", count)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	url, printed := writeReport(t, "replay", "--config", files[0], "--config", files[1], "--names", "--top", "200", realLog)
	var want replay.Report
	if err := json.Unmarshal(printed, &want); err != nil {
		t.Fatal(err)
	}
	b := newTab(t)
	for _, width := range []int64{360, 1200} {
		b.open(url, width, 900, "light")
		if got := eval[int64](b, "document.documentElement.scrollWidth"); got > width {
			t.Errorf("the page is %d pixels wide, want %d at most", got, width)
		}
	}
	if figures, drawn := eval[int](b, "document.querySelectorAll('figure').length"), eval[int](b, "document.querySelectorAll('figure canvas').length"); figures < 6 || drawn != figures {
		t.Errorf("%d of %d pictures are drawn", drawn, figures)
	}
	words := eval[string](b, "document.querySelector('main').textContent")
	for _, l := range want.Limits {
		if l.Rule == "" && l.Limit == "all rules together" {
			name := filepath.Base(l.File)
			for _, said := range []string{
				fmt.Sprintf("With the 5 rules of %s, %s of %s clients would notice: %s of the requests that could be decided would have been refused; most by rule ", name,
					cli.Thousands(int64(l.Clients)), cli.Thousands(int64(want.Keys)), cli.Percent(l.Refused, l.Admitted+l.Refused)),
				fmt.Sprintf("By %s, %s of 10,000 requests could not be decided", name, cli.Thousands(l.Undecided)),
				fmt.Sprintf("By %s, %s of %s decisions depend on when exactly", name, cli.Thousands(l.Unsure), cli.Thousands(l.Admitted+l.Refused)),
			} {
				if !strings.Contains(words, said) {
					t.Errorf("the page does not say %q", said)
				}
			}
		}
	}
	sameRules(t, b, want)
	d := want.Difference
	if got, want := eval[string](b, "document.querySelector('h1').textContent"), fmt.Sprintf("From old.yaml to new.yaml, %s would be refused newly, and %d no longer.",
		cli.Plural(int64(d.OnlySecond), "client"), d.OnlyFirst); got != want {
		t.Errorf("the headline is %q, want %q", got, want)
	}
	changes := cells(b, "section:has(#change) tbody tr")
	if len(changes) != len(d.Keys) || len(changes) < 5 {
		t.Fatalf("the page has %d clients that notice, want %d", len(changes), len(d.Keys))
	}
	for i, k := range d.Keys {
		if got, want := fmt.Sprint(changes[i]), fmt.Sprint([]string{k.Key, cli.Thousands(k.Requests), cli.Thousands(k.First), cli.Thousands(k.Second), fmt.Sprintf("%+d", k.Second-k.First)}); got != want {
			t.Errorf("the page says of a change %s, want %s", got, want)
		}
	}
}

// sameRules compares the tables of rules. The row of all rules of a file is the last of its table.
func sameRules(t *testing.T, b *tab, report replay.Report) {
	t.Helper()
	rows, sums := cells(b, "section:has(#rules) tbody tr"), cells(b, "section:has(#rules) tfoot tr")
	inAll, refused := int64(0), int64(0)
	for _, l := range report.Limits {
		from, start := &rows, []string{l.Rule, l.Limit}
		if l.Rule == "" {
			start = []string{l.Limit, ""}
		}
		if start[0] == "all rules together" {
			from, start = &sums, []string{"all together", ""}
			refused += l.Refused
		}
		inAll += l.InAll
		want := append(start, cli.Thousands(l.Admitted), cli.Thousands(l.Refused), cli.Percent(l.Refused, l.Admitted+l.Refused+l.Elsewhere), backtest.Noticing(report, l),
			cli.Thousands(l.Elsewhere), cli.Thousands(l.Unsure), cli.Thousands(l.Undecided))
		if len(*from) == 0 {
			t.Fatalf("the page lacks the row %s", want)
		}
		if got := (*from)[0]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the page says of a rule %s, want %s", got, want)
		}
		*from = (*from)[1:]
	}
	if len(rows)+len(sums) > 0 || inAll != refused || refused == 0 {
		t.Errorf("rows %v and %v are of no rule; the rules refuse %d of the %d requests that all together refuse", rows, sums, inAll, refused)
	}
}
