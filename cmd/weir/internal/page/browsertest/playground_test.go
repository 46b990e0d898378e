package browsertest

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// built is the folder of the playground, which takes half a minute to build when nothing is compiled.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "playground")
	if err != nil {
		return "", err
	}
	if printed, err := exec.Command("../../../../../scripts/playground.sh", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("scripts/playground.sh: %w: %s", err, printed)
	}
	return dir, nil
})

// playgroundPage is the page "Try it", served by weir playground, behind a proxy that counts requests.
type playgroundPage struct {
	*tab
	url   string
	asked atomic.Int64
}

// openPlayground serves the page to a browser.
func openPlayground(t *testing.T) *playgroundPage {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the program for the browser; make long does")
	}
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	command := weirCommand(t, "playground", dir)
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	_, at, _ := strings.Cut(line, " at ")
	address, _, _ := strings.Cut(at, " ")
	behind, parseErr := url.Parse(address)
	if err != nil || parseErr != nil || behind.Host == "" {
		t.Fatalf("weir playground says %q (%v)", line, err)
	}
	p := &playgroundPage{}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.url, p.tab = server.URL+"/", newTab(t)
	return p
}

// visit opens the page with a fragment, and waits until the program runs.
func (p *playgroundPage) visit(fragment string, width int64, scheme string) {
	p.t.Helper()
	p.open("about:blank", width, 900, scheme)
	p.open(p.url+fragment, width, 900, scheme)
	p.await("document.querySelector('#state').textContent.startsWith('Ready')")
}

// choose drops a file on the page. expression makes its content.
func (p *playgroundPage) choose(name, expression string) {
	p.t.Helper()
	eval[bool](p.tab, fmt.Sprintf(`(() => { const all = new DataTransfer(); all.items.add(new File([%s], %q)); const input = document.querySelector('#file');
		input.files = all.files; return input.dispatchEvent(new Event('change')) })()`, expression, name))
}

// bytesOf is an expression with bytes.
func bytesOf(content []byte) string {
	return fmt.Sprintf("Uint8Array.from(atob(%q), c => c.charCodeAt(0))", base64.StdEncoding.EncodeToString(content))
}

// fill types a text into a field in place of what it has.
func (p *playgroundPage) fill(field, text string) {
	p.t.Helper()
	quoted, _ := json.Marshal(text)
	eval[bool](p.tab, fmt.Sprintf("(() => { const f = document.querySelector(%q); f.value = %s; return f.dispatchEvent(new Event('input')) })()", field, quoted))
}

// nameless are controls without a name for screen readers.
const nameless = `Array.from(document.querySelectorAll('button, input, select, textarea, [tabindex]')).filter(e => e.offsetParent && !(e.getAttribute('aria-label') ||
	e.labels?.length || e.textContent.trim())).map(e => e.outerHTML.slice(0, 200))`

// Each part works with keyboard and pointer on a phone and on a desk, in light and dark. After loading, the page asks no network.
func TestThePlaygroundIsPlayed(t *testing.T) {
	p := openPlayground(t)
	shots := os.Getenv("WEIR_PLAYGROUND_SHOTS") // a folder for pictures
	shot := func(name string) {
		if shots != "" {
			p.picture(filepath.Join(shots, name+".png"))
		}
	}
	log, err := os.ReadFile(realLog)
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			name := fmt.Sprintf("%s-%d", scheme, width)
			p.visit("", width, scheme)
			loaded := p.asked.Load()
			p.await("document.querySelectorAll('.course canvas').length === 2")
			fits := func(part string) {
				t.Helper()
				if got := eval[int64](p.tab, "document.documentElement.scrollWidth"); got > width {
					t.Errorf("%s: %s is %d pixels wide", name, part, got)
				}
				if got := eval[[]string](p.tab, nameless); len(got) > 0 {
					t.Errorf("%s: %s has controls without a name: %q", name, part, got)
				}
			}
			p.click("#classics button:nth-child(1)")
			p.await("document.querySelector('.course figcaption')?.textContent.startsWith('token bucket 5/s burst 10')")
			p.await("document.querySelector('#note').textContent.includes('no boundary')")
			eval[bool](p.tab, "(document.querySelector('.course canvas').focus(), true)")
			p.press(kb.ArrowRight)
			p.await("document.querySelector('.course .readout').textContent.includes('client 1 is admitted')")
			p.press(kb.End)
			p.await("document.querySelector('.course .readout').textContent.includes('may come again after')")
			p.click("#run")
			p.await("document.querySelector('#run').textContent === 'Pause' && Number(document.querySelector('#time').value) < 900")
			p.click("#run")
			fits("Play")
			shot("play-" + name)
			eval[bool](p.tab, "(document.querySelector('#tab-play').focus(), true)")
			p.press(kb.ArrowRight)
			p.await("!document.querySelector('#log').hidden && document.querySelector('#play').hidden")
			p.choose("access.log.gz", bytesOf(log))
			p.await("document.querySelector('#log-answer .lead')?.textContent === 'token bucket 1/m burst 75'")
			p.click("#log-try")
			p.await("document.querySelectorAll('#log-answer figure canvas').length === 2")
			fits("Your log")
			shot("log-" + name)
			p.click("#tab-rules")
			p.await("document.querySelector('#rules-answer pre')?.textContent.includes('the limit of rule \"login\" decides')")
			p.await("document.querySelector('#rules-answer li')?.textContent === 'holds: the sixth log-in waits'")
			fits("Your rules")
			shot("rules-" + name)
			if got := p.asked.Load(); got != loaded {
				t.Errorf("%s: the page asks the network %d times after loading", name, got-loaded)
			}
		}
	}
}

// The settings of Play are in the URL, and nothing of a log. What no page has written there does no harm.
func TestTheLinkOfThePlaygroundHasItsSettings(t *testing.T) {
	p := openPlayground(t)
	p.visit("#part=play&limit=rate+gate+2%2Fs&traffic=constant+5%2Fs&for=3s&seed=7", 1280, "light")
	p.await("document.querySelector('.course figcaption')?.textContent.startsWith('rate gate 2/s')")
	if got := eval[int](p.tab, "document.querySelectorAll('.course').length"); got != 1 {
		t.Errorf("%d limits are shown, want 1", got)
	}
	p.fill("#limit-0", "token bukket 1/s")
	p.await("document.querySelector('#problem-0').textContent.includes('unexpected \"bukket\"')")
	p.await("location.hash.includes('bukket') && location.hash.includes('seed=7')")
	for _, hostile := range []string{"#part=__proto__&limit=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E&seed=-1&for=1e9h", "#%ff%fe&part=play&limit=%00", "#" + strings.Repeat("limit=1/s&", 2000), "#part=play&traffic=constant+1/s"} {
		p.visit(hostile, 1280, "light")
		p.await("document.querySelector('#limit-0').value !== ''")
		if got := eval[int](p.tab, "document.querySelectorAll('main img').length"); got != 0 {
			t.Errorf("%.80s: markup of the fragment is in the page", hostile)
		}
	}
	p.visit("#part=log", 1280, "light")
	p.choose("secret-name.log", `'192.0.2.7 - - [17/May/2015:10:05:03 +0000] "GET /secret HTTP/1.1" 200 1\n'`)
	p.await("document.querySelector('#log-answer').textContent.includes('1 lines')")
	if got := eval[string](p.tab, "location.href"); strings.Contains(got, "secret") || strings.Contains(got, "192.0.2") {
		t.Errorf("the link tells of the log: %s", got)
	}
}

// Bad input gets a sentence, and the page goes on. A log with markup in every field does nothing.
func TestThePlaygroundSurvivesBadInput(t *testing.T) {
	p := openPlayground(t)
	p.visit("#part=log", 1280, "light")
	log, err := os.ReadFile(realLog)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, content, want string }{
		{"half.gz", bytesOf(log[:len(log)/2]), "unexpected EOF"},
		{"binary", "new Uint8Array(3_000_000).map((_, i) => i * 7)", "could be read"},
		{"line", "new Uint8Array(200 * 1024 * 1024).fill(120)", "none of 1 line could be read"},
	} {
		p.choose(c.name, c.content)
		p.await(fmt.Sprintf("document.querySelector('#log-problem').textContent.includes(%q)", c.want))
	}
	markup := `<img src=x onerror=alert(1)>`
	line := strings.Repeat(fmt.Sprintf(`{"time":"2026-11-22T02:30:00Z","client":"192.0.2.1","method":%q,"host":%[1]q,"path":%[1]q,"user":%[1]q}`+"\n", markup), 30)
	eval[bool](p.tab, "(document.querySelector('#log-key').value = 'user', true)")
	p.fill("#log-limits", "1/m\n2/m")
	p.choose("<b>name</b>.jsonl", bytesOf([]byte(line+markup+"\n")))
	p.await("document.querySelector('#log-answer').textContent.includes('31 lines')")
	p.click("#log-try")
	p.await("document.querySelector('#log-answer').textContent.includes('" + markup + "')")
	if got := eval[int](p.tab, "document.querySelectorAll('main img, main b').length"); got != 0 {
		t.Errorf("%d elements of the log are in the page", got)
	}
	p.click("#tab-rules")
	p.await("document.querySelector('#rules-answer pre')")
	p.fill("#rules-text", "rules:\n  - name: x\n    limit: token bukket 1/s\n")
	p.await("document.querySelector('#rules-problem').textContent.includes('weir.yaml:3')")
	p.fill("#rules-text", "rules: [{name: x, match: any, limit: 5/m}]\n")
	p.await("document.querySelector('#rules-answer pre')?.textContent.includes('rule \"x\" decides')")
}

// A stop ends the worker while it computes. Another takes its place, without a request.
func TestThePlaygroundStops(t *testing.T) {
	p := openPlayground(t)
	p.visit("", 1280, "light")
	p.await("document.querySelector('.course')")
	loaded := p.asked.Load()
	p.fill("#for", "3m")
	p.fill("#traffic", "constant 50000/s")
	p.await("!document.querySelector('#busy').hidden")
	p.click("#stop")
	p.await("document.querySelector('#busy').hidden")
	p.fill("#for", "5s")
	p.fill("#traffic", "constant 3/s")
	p.await("document.querySelector('.course figcaption').textContent.startsWith('fixed window 10/2s15 admitted')")
	if got := p.asked.Load(); got != loaded {
		t.Errorf("the page asks the network %d times for a stop", got-loaded)
	}
}

// Without WebAssembly, the page says what it lacks.
func TestThePlaygroundSaysThatItLacksWebAssembly(t *testing.T) {
	p := openPlayground(t)
	p.do(chromedp.Navigate("about:blank"))
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/worker.js" {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte("delete self.WebAssembly\n"))
			text, _ := os.ReadFile(filepath.Join(dir, "worker.js"))
			_, _ = w.Write(text)
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.open(server.URL, 1280, 900, "light")
	p.await("document.querySelector('#state').textContent.includes('runs no WebAssembly')")
}

// The picture of the playground stands in the documentation. With -write-docs, which `make docs` gives, it is made again.
func TestThePictureOfThePlayground(t *testing.T) {
	name := filepath.Join(pictures, "playground.png")
	if !*writeDocs {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
		return
	}
	p := openPlayground(t)
	p.visit("", 1100, "light")
	p.await("document.querySelectorAll('.course canvas').length === 2")
	eval[bool](p.tab, "(document.querySelector('.course canvas').focus(), true)")
	p.press(kb.End)
	p.await("document.querySelector('.course .readout').textContent.includes('client 1 is')")
	eval[bool](p.tab, "(document.querySelectorAll('header, .tabs, #play > h2, #traffics, #drawing, .words').forEach(e => { e.hidden = true }), scrollTo(0, 0), true)")
	p.picture(name)
}
