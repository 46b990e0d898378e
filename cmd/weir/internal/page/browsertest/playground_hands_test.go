package browsertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Traffic is drawn by a pointer that is dragged over the bars, and by the arrow keys. What is drawn is text, and is played.
func TestTrafficIsDrawnByPointerAndByKeyboard(t *testing.T) {
	p := openPlayground(t)
	for _, width := range []int64{1280, 390} {
		p.visit("#part=play&limit=fixed+window+10/2s&traffic=constant+1/s&for=10s", width, "light")
		p.await("document.querySelector('.course figcaption')?.textContent.includes('10 admitted')")
		p.click("#drawing summary")
		eval[bool](p.tab, "(document.querySelector('#bars').scrollIntoView({ block: 'center', behavior: 'instant' }), true)")
		middle := func(bar int) (x, y float64) {
			at := eval[[]float64](p.tab, fmt.Sprintf("(() => { const r = document.querySelectorAll('#bars input')[%d].getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2] })()", bar))
			return at[0], at[1]
		}
		x, y := middle(2)
		p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, x, y, chromedp.ButtonLeft))
		x, y = middle(3)
		p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y, chromedp.ButtonLeft), chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, x, y, chromedp.ButtonLeft))
		p.await("document.querySelector('#traffic').value === 'storm 15 at 1000ms and storm 15 at 1500ms'")
		p.await("document.querySelector('.course figcaption').textContent.includes('fixed window 10/2s10 admitted, 20 refused')")

		eval[bool](p.tab, "(document.querySelectorAll('#bars input')[10].focus(), true)")
		p.press(kb.ArrowUp + kb.ArrowUp + kb.ArrowUp)
		p.await("document.querySelector('#traffic').value.endsWith(' and storm 3 at 5000ms')")
		p.await("document.querySelector('.course figcaption').textContent.includes('13 admitted, 20 refused')")
		p.press(kb.Tab)
		if got := eval[string](p.tab, "document.activeElement.getAttribute('aria-label')"); got != "requests at step 12 of 20" {
			t.Errorf("Tab goes from the eleventh bar to %q", got)
		}
		p.click("#retrying")
		p.await("document.querySelector('#traffic').value.startsWith('storm 15 at 1000ms retry every 1s and ')")
		p.await("document.querySelector('.course figcaption').textContent.includes('attempts')")
		p.await("new URLSearchParams(location.hash.slice(1)).get('traffic') === document.querySelector('#traffic').value")
	}
}

// A rules file in place of a limit has its limits chosen from, and the same problems as for the program, as one types. The choice
// keeps the focus, and the explanation stays open.
func TestPastedRulesArePlayed(t *testing.T) {
	p := openPlayground(t)
	p.visit("#part=play&limit=1/s&traffic=constant+5/s&for=10s", 1280, "light")
	p.await("document.querySelector('.course')")
	p.fill("#limit-0", "rules:\n  - {name: login, match: {path: /login}, key: client, limit: fixed window 3/10s}\n"+
		"  - {name: month, match: any, key: client, limit: quota 7/month in Europe/Paris and 100/s, charge: {when: after, most: 9}}\n")
	p.await("document.querySelector('.course figcaption').textContent.startsWith('fixed window 3/10s3 admitted')")
	p.click("#problem-0 summary")
	eval[bool](p.tab, "(document.querySelector('#problem-0 select').focus(), true)")
	p.press(kb.ArrowDown)
	p.await("document.querySelector('.course figcaption').textContent.includes('7 admitted, 43 refused')")
	const said = "document.querySelector('#problem-0').innerText"
	p.await(said + ".includes('The next begin on ')")
	for _, want := range []string{
		"The zone data is that of this program", "takes nothing from any. Each worst case holds",
		"Rule month is charged after the work: a cost that does not fit leaves a debt, and one cost counts at most 9. Play charges each request before it.",
	} {
		if got := eval[string](p.tab, said); !strings.Contains(got, want) {
			t.Errorf("the page says\n%s\nwant %q", got, want)
		}
	}
	if got := eval[string](p.tab, "document.activeElement.localName"); got != "select" {
		t.Errorf("after a choice the focus is on %q, want the choice", got)
	}

	eval[bool](p.tab, "(() => { const f = document.querySelector('#limit-0'); f.focus(); f.setSelectionRange(f.value.indexOf('window') + 6, f.value.indexOf('window') + 6); return true })()")
	p.press("s")
	p.await("document.querySelector('#problem-0').textContent.includes('weir.yaml:2') && document.querySelector('#problem-0').textContent.includes('windows')")
	p.await("document.querySelector('#problem-0 li') && document.querySelector('#limit-0').getAttribute('aria-invalid') === 'true'")
	p.press(kb.Backspace)
	p.await("document.querySelector('#problem-0 select') && !document.querySelector('#limit-0').hasAttribute('aria-invalid')")

	p.click("#tab-rules")
	p.await("document.querySelector('#rules-answer pre')")
	eval[bool](p.tab, "(() => { const f = document.querySelector('#rules-text'); f.focus(); f.setSelectionRange(f.value.indexOf('bucket'), f.value.indexOf('bucket')); return true })()")
	p.press("x")
	p.await("document.querySelector('#rules-problem').textContent.includes('xbucket') && document.querySelector('#rules-problem li')")
	p.press(kb.Backspace)
	p.await("!document.querySelector('#rules-problem').textContent && document.querySelector('#rules-answer pre')")
}

// numbered returns a report with a number in place of each mask, because the masks of two reports never agree.
func numbered(report []byte) string {
	masks := map[string]string{}
	return regexp.MustCompile(`\b[0-9a-f]{10}\b`).ReplaceAllStringFunc(string(report), func(mask string) string {
		if masks[mask] == "" {
			masks[mask] = fmt.Sprintf("mask %d", len(masks))
		}
		return masks[mask]
	})
}

// The report that the page saves is the one that weir replay --report writes.
func TestTheSavedReportIsThatOfTheProgram(t *testing.T) {
	p := openPlayground(t)
	p.visit("#part=log", 1280, "light")
	log, err := os.ReadFile(realLog)
	if err != nil {
		t.Fatal(err)
	}
	saved := t.TempDir()
	p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: saved})
		return err
	}))
	p.choose("access.log.gz", bytesOf(log))
	p.await("document.querySelector('#log-answer .lead')?.textContent === 'token bucket 1/m burst 75'")
	check := func(args ...string) {
		t.Helper()
		file := filepath.Join(saved, "weir-report.html")
		p.click("#log-save")
		for began := time.Now(); ; time.Sleep(20 * time.Millisecond) { // between two looks
			if _, err := os.Stat(file); err == nil {
				break
			}
			if time.Since(began) > patience {
				t.Fatalf("nothing is saved; the page shows\n%s", eval[string](p.tab, "document.body.innerText"))
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		written := filepath.Join(t.TempDir(), "report.html")
		command := weirCommand(t, append([]string{"replay", "--report", written}, append(args, "access.log.gz")...)...)
		command.Dir = filepath.Dir(realLog)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		want, err := os.ReadFile(written)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := numbered(got), numbered(want); got != want {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Errorf("replay %q: the saved page has %d bytes, that of the program %d; at %d it has\n%.300q\nwant\n%.300q", args, len(got), len(want), at, got[max(at-50, 0):], want[max(at-50, 0):])
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	check("--suggest", "refuse 0.1% of clients")
	p.fill("#log-limits", "fixed window 5/10s\nsliding window 60/1m")
	p.click("#log-try")
	p.await("document.querySelectorAll('#log-answer figure canvas').length === 2")
	p.click("#log-names")
	check("--limit", "fixed window 5/10s", "--limit", "sliding window 60/1m", "--names")
}
