package browsertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/replay"
)

const realLog = "../../../../../simulate/testdata/access.log.gz"

// writeReport runs weir with --report and --format json. It returns the URL of the page, and the JSON.
func writeReport(t *testing.T, args ...string) (url string, printed []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args = append([]string{"weir"}, append(args, "--report", file, "--format", "json")...)
	cmd.Stderr = os.Stderr
	if printed, err = cmd.Output(); err != nil {
		t.Fatal(err)
	}
	return "file://" + file, printed
}

// cells returns the texts of the rows of a table, by a selector of rows.
func cells(b *tab, rows string) [][]string {
	b.t.Helper()
	return eval[[][]string](b, fmt.Sprintf("Array.from(document.querySelectorAll(%q), row => Array.from(row.cells, c => c.textContent))", rows))
}

func TestTheNumbersOfAReportAreThoseOfTheJSON(t *testing.T) {
	url, printed := writeReport(t, "replay", "--limit", "fixed window 5/10s", "--limit", "sliding window 60/1m", "--top", "200", "--names", realLog)
	var want replay.Report
	if err := json.Unmarshal(printed, &want); err != nil {
		t.Fatal(err)
	}
	b := newTab(t)
	b.open(url, 1200, 900, "light")
	for i, row := range cells(b, "section:has(#limits) tbody tr") {
		l := want.Limits[i]
		if got, want := fmt.Sprint(row), fmt.Sprint([]string{l.Limit, cli.Thousands(l.Refused), cli.Percent(l.Refused, l.Admitted+l.Refused), cli.Thousands(int64(l.KeysRefused)),
			cli.Percent(int64(l.KeysRefused), int64(want.Keys))}); got != want {
			t.Errorf("the page says of a limit %s, want %s", got, want)
		}
	}
	var keys, minutes, changes []string
	for _, l := range want.Limits {
		for _, k := range l.WorstKeys {
			keys = append(keys, fmt.Sprint([]string{k.Key, cli.Thousands(k.Admitted + k.Refused), cli.Thousands(k.Admitted), cli.Thousands(k.Refused), cli.Percent(k.Refused, k.Admitted+k.Refused)}))
		}
		for _, m := range l.WorstMinutes {
			minutes = append(minutes, fmt.Sprint([]string{m.Minute.Format("2006-01-02 15:04"), cli.Thousands(m.Admitted + m.Refused), cli.Thousands(m.Admitted), cli.Thousands(m.Refused), cli.Percent(m.Refused, m.Admitted+m.Refused)}))
		}
	}
	for _, k := range want.Difference.Keys {
		changes = append(changes, fmt.Sprint([]string{k.Key, cli.Thousands(k.Requests), cli.Thousands(k.First), cli.Thousands(k.Second), fmt.Sprintf("%+d", k.Second-k.First)}))
	}
	for section, wants := range map[string][]string{"worst": keys, "minutes": minutes, "change": changes} {
		var got []string
		for _, row := range cells(b, "section:has(#"+section+") tbody tr") {
			got = append(got, fmt.Sprint(row[:5])) // of keys, what follows is when they were refused
		}
		if strings.Join(got, "\n") != strings.Join(wants, "\n") || len(got) < 5 {
			t.Errorf("the rows of %s are\n%s\nwant\n%s", section, strings.Join(got, "\n"), strings.Join(wants, "\n"))
		}
	}
	words := eval[string](b, "document.querySelector('section:has(#busiest)').textContent")
	for _, busiest := range want.Busiest {
		if said := fmt.Sprintf("nine in ten never more than %s, 99%% never more than %s, and the busiest makes %s.", cli.Thousands(busiest.P90), cli.Thousands(busiest.P99), cli.Thousands(busiest.Most)); !strings.Contains(words, said) {
			t.Errorf("the page does not say %q", said)
		}
	}
}

// In light and dark, on a phone and on a desk: all pictures are drawn, nothing is wider than the screen, and no network is asked.
// What the console or the policy says fails the test.
func TestAReportFitsEveryScreen(t *testing.T) {
	url, _ := writeReport(t, "replay", "--suggest", "refuse 0.1%", realLog)
	b := newTab(t)
	backgrounds := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 1200} {
			b.open(url, width, 800, scheme)
			if got := eval[int64](b, "document.documentElement.scrollWidth"); got > width {
				t.Errorf("the page is %d pixels wide in %s, want %d at most", got, scheme, width)
			}
			if figures, drawn := eval[int](b, "document.querySelectorAll('figure').length"), eval[int](b, "document.querySelectorAll('figure canvas').length"); figures < 6 || drawn != figures {
				t.Errorf("%d of %d pictures are drawn", drawn, figures)
			}
			if asked := eval[int](b, "performance.getEntriesByType('resource').length"); asked != 0 {
				t.Errorf("the page asks a network %d times", asked)
			}
		}
		backgrounds[eval[string](b, "getComputedStyle(document.body).backgroundColor")] = true
	}
	if len(backgrounds) != 2 {
		t.Errorf("light and dark have the backgrounds %v", backgrounds)
	}
}

func TestAReportPrintsWhole(t *testing.T) {
	url, _ := writeReport(t, "replay", "--limit", "fixed window 5/10s", "--limit", "sliding window 60/1m", realLog)
	b := newTab(t)
	const paper = 688 // A4 within the margins of the page
	b.open(url, paper, 900, "dark")
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		return err
	}))
	eval[bool](b, "dispatchEvent(new Event('beforeprint'))")
	if got := eval[int](b, "document.documentElement.scrollWidth"); got > paper {
		t.Errorf("the print is %d pixels wide, want %d at most", got, paper)
	}
	if all, drawn := eval[int](b, "document.querySelectorAll('figure').length"), eval[int](b, "document.querySelectorAll('canvas.on-paper').length"); drawn != all {
		t.Errorf("%d of %d pictures are on paper", drawn, all)
	}
	if got := eval[string](b, "getComputedStyle(document.body).color"); got != "rgb(24, 32, 42)" {
		t.Errorf("a dark page prints in %s, want dark ink", got)
	}
	eval[bool](b, "dispatchEvent(new Event('afterprint'))")
	pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF(chromedp.PDFPreferCSSPageSize()))
	if err != nil || !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		t.Errorf("the print is no PDF: %v, %.20q", err, pdf)
	}
}

func TestAReportIsUsedByKeyboard(t *testing.T) {
	url, _ := writeReport(t, "replay", "--limit", "fixed window 5/10s", "--names", realLog)
	b := newTab(t)
	b.open(url, 1200, 900, "light")
	eval[bool](b, "document.querySelector('.plot').focus() || true")
	b.press(kb.ArrowRight + kb.ArrowRight)
	b.await("document.querySelector('.readout').textContent.includes('admitted')")
	table := "section:has(#worst) table"
	eval[bool](b, "document.querySelector('"+table+" th:nth-child(2) button').focus() || true")
	b.press("\r")
	b.await("document.querySelector('" + table + " th:nth-child(2)').ariaSort === 'descending'")
	requests := eval[[]float64](b, "Array.from(document.querySelectorAll('"+table+" tbody tr'), r => parseFloat(r.cells[1].textContent.replace(',', '')))")
	for i := range requests[1:] {
		if requests[i] < requests[i+1] {
			t.Fatalf("the requests are %v, want the most first", requests)
		}
	}
	eval[bool](b, "document.querySelector('section:has(#worst) input').focus() || true")
	b.press("130.237")
	b.await("Array.from(document.querySelectorAll('" + table + " tbody tr')).filter(r => !r.hidden).every(r => r.textContent.includes('130.237'))")
	if sums := cells(b, table+" tfoot tr"); len(sums) != 1 || sums[0][1] != "10,000" {
		t.Errorf("the sums of a filtered table are %v, want those of all requests", sums)
	}
	eval[bool](b, "document.querySelector('.choices button').focus() || true")
	b.press("\r")
	b.await("!document.getElementById('busiest-0').hidden && document.getElementById('busiest-0').querySelector('canvas').clientWidth > 600")
}

// hostileKey draws a key that tries to leave its place.
func hostileKey(random *rand.Rand) string {
	parts := []string{
		"</script>", "<script>window.hacked=1</script>", "<img src=x onerror=window.hacked=1>", "\"onmouseover=\"window.hacked=1", "'", "\"", "`${window.hacked=1}`", "&lt;", "&#60;",
		"\u2028", "\u2029", "\u202e", "\u2066", "\x00", "\x1b[31m", "\xff\xfe", "\xc3", "<!--", "-->", "]]>", "javascript:window.hacked=1", "{{.}}", "\\u003c", "\\", "é", "😀", "<svg/onload=window.hacked=1>",
		strings.Repeat("x", 300), "\n", "\t",
	}
	var b strings.Builder
	for range 1 + random.IntN(6) {
		b.WriteString(parts[random.IntN(len(parts))])
	}
	return b.String()
}

func TestHostileKeysRunNoScript(t *testing.T) {
	b := newTab(t)
	for seed := range randtest.Seeds(t, 8, 3) {
		random := rand.New(rand.NewPCG(seed, 43))
		var log bytes.Buffer
		for i := range 400 {
			key := hostileKey(random)
			if i < 40 {
				key += fmt.Sprint(i)
			}
			for range 4 {
				fmt.Fprintf(&log, "{\"ts\":%d,\"k\":\"", 1800000000+random.IntN(600))
				for _, c := range []byte(key) { // as servers write them: escaped, or as they are
					if c < ' ' || c == '"' || c == '\\' {
						fmt.Fprintf(&log, "\\u%04x", c)
					} else {
						log.WriteByte(c)
					}
				}
				log.WriteString("\"}\n")
			}
		}
		file := filepath.Join(t.TempDir(), "</script><b>"+fmt.Sprint(seed)+".log")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, log.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		url, _ := writeReport(t, "replay", "--key", "k", "--names", "--limit", "fixed window 1/h", "--limit", "fixed window 2/h", file)
		b.open(url, 1200, 900, "light")
		if eval[bool](b, "'hacked' in window") {
			t.Fatalf("seed %d: a key ran script", seed)
		}
		strange := eval[[]string](b, `Array.from(document.querySelectorAll('body *:not(a[href^="#"])'), e => e.localName + Array.from(e.attributes, a => a.name).filter(n => n.startsWith('on')).join())
			.filter(n => !'main header section div p h1 h2 h3 ul li table caption thead tbody tfoot tr th td bdi strong figure figcaption noscript button input select option span small details summary canvas svg rect circle script'.split(' ').includes(n))`)
		if len(strange) > 0 {
			t.Errorf("seed %d: the page has %v", seed, strange)
		}
		if scripts := eval[int](b, "document.scripts.length"); scripts != 2 {
			t.Errorf("seed %d: the page has %d scripts, want 2", seed, scripts)
		}
		if unprintable := eval[bool](b, `/[\u2028\u202e\u2066\u0000\u001b]/.test(document.body.innerText)`); unprintable {
			t.Errorf("seed %d: the page shows a character that changes the order of text", seed)
		}
	}
}
