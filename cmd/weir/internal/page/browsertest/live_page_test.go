package browsertest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

var writeDocs = flag.Bool("write-docs", false, "write the pictures of docs/pictures")

// startWatched starts a daemon whose admin port is at TCP, for a viewer and an operator with the tokens that it returns.
func startWatched(t *testing.T) (d *liveDaemon, url, viewer, operator string) {
	t.Helper()
	viewer, seen := auth.NewToken()
	operator, all := auth.NewToken()
	folder := t.TempDir()
	d = &liveDaemon{t: t, socket: filepath.Join(folder, "admin"), logs: filepath.Join(folder, "log")}
	tokens := filepath.Join(folder, "tokens")
	if err := os.WriteFile(tokens, []byte("watcher "+seen+" metrics\nops "+all+" metrics admin take\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	d.start("--tokens", tokens, "--admin", address, "--insecure", "--rule", "login=1/h")
	return d, "http://" + address + "/", viewer, operator
}

// signIn types a token.
func (b *tab) signIn(token string) {
	b.t.Helper()
	b.await("!document.querySelector('#sign-in').hidden && document.activeElement.id === 'token'")
	b.press(token + "\r")
}

const shownPanels = "Array.from(document.querySelectorAll('nav a:not([hidden])'), a => a.textContent).join(', ')"

// Over TCP the page is empty until someone types a token. Without the scope admin there are no keys and no buttons, and the daemon
// refuses what they would do. The token is nowhere but in memory.
func TestViewersWithoutTheScopeSeeNoButton(t *testing.T) {
	t.Parallel()
	d, url, viewer, operator := startWatched(t)
	for range 3 {
		d.take(map[string]string{"rule": "login", "key": "secret-key"})
	}
	b := newTab(t)
	b.open(url, 1280, 900, "light")
	b.signIn("wrong")
	b.await(shows("#sign-in-why", "That token does not do"))
	b.signIn(viewer)
	b.await("!document.querySelector('main').hidden")
	if got := eval[string](b, shownPanels); got != "Now, Rules" {
		t.Errorf("a viewer sees the panels %s", got)
	}
	for _, panel := range []string{"now", "rules", "rules/login"} {
		b.show(panel)
		b.await(shows("main", "login"))
		for _, hidden := range []string{"secret-key", "Explain", "Refused lately"} {
			if eval[bool](b, shows("main", hidden)) {
				t.Errorf("a viewer sees %q in %s", hidden, panel)
			}
		}
	}
	eval[*string](b, "location.hash = 'keys', null")
	b.await("!document.querySelector('#now').hidden")
	for path, body := range map[string]string{"override": `{"key":"k","limit":"deny all","until":"2030-01-01T00:00:00Z"}`, "reset": `{"rule":"login","key":"k"}`, "key": `{"key":"k"}`, "whatif": `{"rule":"login","limit":"1/s"}`, "refused": `{"rule":"login"}`, "drain": `{}`} {
		ask := fmt.Sprintf("fetch('v1/admin/%s', {method: 'POST', headers: {'Content-Type': 'application/json', 'Weir-Request': 'page', Authorization: 'Bearer %s'}, body: %q}).then(r => r.status)", path, viewer, body)
		if status := eval[int](b, ask); status != 403 {
			t.Errorf("%s: got status %d, want 403", path, status)
		}
	}
	kept := eval[string](b, "JSON.stringify([location.href, document.cookie, {...localStorage}, {...sessionStorage}, history.state, document.documentElement.outerHTML])")
	if strings.Contains(kept, viewer) {
		t.Errorf("the token is in %s", kept)
	}
	b.do(chromedp.Reload())
	b.signIn(operator)
	b.await("!document.querySelector('main').hidden")
	if got := eval[string](b, shownPanels); got != "Now, Rules, Keys, What if, Audit" {
		t.Errorf("an operator sees the panels %s", got)
	}
	b.show("keys")
	b.await(shows("#refused-keys", "secret-key"))
}

// Ten thousand rules are found by a word, and the page answers while their figures change.
func TestThePageShowsTenThousandRules(t *testing.T) {
	t.Parallel()
	d := startLive(t)
	var rules strings.Builder
	rules.WriteString("rules:\n")
	for i := range 10_000 {
		fmt.Fprintf(&rules, "  - {name: rule-%04d, match: {path: /p%d}, key: client, limit: %d/h}\n", i, i, 1+i%7)
	}
	d.write(rules.String())
	b := newTab(t)
	b.watch(d.page)
	b.show("rules")
	b.await(shows("#rules-count", "10,000 rules"))
	for range 8 {
		d.take(client("/p9876", "192.0.2.1"))
	}
	b.await("document.querySelector('#rules-table tbody tr').innerText.startsWith('rule-9876')")
	b.fill("#rules-find", "/p123")
	b.await(shows("#rules-count", "11 of 10,000 rules") + " && document.querySelectorAll('#rules-table tbody tr').length === 11")
	b.fill("#rules-find", "")
	began := time.Now()
	b.click("#rules-more")
	b.await("document.querySelectorAll('#rules-table tbody tr').length === 200")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("more rows take %v", took)
	}
}

// The page and its script are below 150 KB, and the first paint comes within 300 ms on this machine: in the best of five, because other
// tests use it too. All of it works behind a prefix.
func TestThePageIsSmallAndPaintsAtOnce(t *testing.T) {
	t.Parallel()
	d := startLive(t)
	prefixed := behind(t, "/weir/", d.page)
	b := newTab(t)
	best := 1e9
	for range 5 {
		b.watch(prefixed)
		best = min(best, eval[float64](b, "performance.getEntriesByName('first-paint')[0]?.startTime ?? 1e9"))
	}
	if best > 300 {
		t.Errorf("the first paint comes after %.0f ms", best)
	}
	size := eval[int](b, "performance.getEntriesByType('navigation')[0].encodedBodySize + performance.getEntriesByType('resource').filter(r => !r.name.includes('/v1/')).reduce((sum, r) => sum + r.encodedBodySize, 0)")
	t.Logf("%d bytes, first paint after %.0f ms", size, best)
	if size > 150_000 || size < 50_000 {
		t.Errorf("the page has %d bytes", size)
	}
	d.take(client("/login", "192.0.2.1"))
	b.lookUp("192.0.2.1")
	b.click("#key tbody tr button")
	b.confirm()
	b.await(shows("#news", "2 of 2 remain"))
	b.do(chromedp.Reload())
	b.await("!document.querySelector('main').hidden && !document.querySelector('#keys').hidden")
	b.show("audit")
	b.await(row("#audit-table", "reset") + ".includes('192.0.2.1')")
}

// On a phone nothing is wider than the screen, in light and in dark. The keyboard reaches and runs everything.
func TestThePageFitsAPhoneAndAKeyboard(t *testing.T) {
	t.Parallel()
	d := startLive(t)
	d.load()
	b := newTab(t)
	for _, scheme := range []string{"light", "dark"} {
		b.open(d.page, 360, 740, scheme)
		b.await("!document.querySelector('main').hidden")
		for _, panel := range []string{"now", "rules", "rules/login", "keys", "what-if", "audit"} {
			b.show(panel)
			if panel == "keys" {
				b.lookUp("203.0.113.1")
			}
			if covered := eval[float64](b, "document.querySelector('header').getBoundingClientRect().bottom - document.querySelector('main > section:not([hidden])').getBoundingClientRect().top"); covered > 0 {
				t.Errorf("the header covers %.0f pixels of %s in %s", covered, panel, scheme)
			}
			if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > 360 {
				t.Errorf("%s is %d pixels wide in %s", panel, wide, scheme)
			}
		}
	}
	b.show("keys")
	b.fill("#key-input", "203.0.113.2")
	b.press("\r")
	b.await("document.querySelector('#key h2')?.textContent === '203.0.113.2' && document.querySelector('#key tbody button')")
	b.tabTo("document.activeElement.closest('#key tbody') && document.activeElement.textContent === 'Reset'")
	b.press("\r")
	b.await("document.querySelector('dialog').open && document.activeElement.id === 'ask-run'")
	b.press("\x1b")
	b.await("!document.querySelector('dialog').open")
	if eval[bool](b, "document.querySelector('#news').textContent.includes('done')") {
		t.Error("Escape has run the change")
	}
	if unnamed := eval[string](b, "Array.from(document.querySelectorAll('input, select, textarea, button')).filter(e => !(e.labels?.length || e.ariaLabel || e.textContent.trim())).map(e => e.outerHTML).join()"); unnamed != "" {
		t.Errorf("a screen reader has no name for %s", unnamed)
	}
}

// tabTo presses the tabulator until a condition holds.
func (b *tab) tabTo(condition string) {
	b.t.Helper()
	for range 60 {
		if eval[bool](b, "!!("+condition+")") {
			return
		}
		b.press("\t")
	}
	b.t.Fatalf("the tabulator never reaches %s", condition)
}
