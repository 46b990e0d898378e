package browsertest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
)

// measured is put before the worker, so that each answer tells the memory of the program, which never shrinks.
const measured = `{
	const instantiate = WebAssembly.instantiate, post = self.postMessage
	let memory
	WebAssembly.instantiate = async (...all) => { const instance = await instantiate(...all); memory = instance.exports.mem; return instance }
	self.postMessage = message => post.call(self, message.answer === undefined ? message : { ...message, memory: memory.buffer.byteLength })
}
`

// A page stays within 1 GB, when what is in use ends the reading of a log whose keys are all different. Two things are measured: the
// program's memory, and that of Chromium's process with the page, which holds the program.
func TestALargeLogStaysWithinTheMemoryOfAPage(t *testing.T) {
	const most = 1 << 30
	p := openMeasured(t)
	log := filepath.Join(t.TempDir(), "large.log.gz")
	writeLarge(t, log, 2_500_000)
	p.fill("#log-key", "path")
	p.do(chromedp.SetUploadFiles("#file", []string{log}))
	for ; !eval[bool](p.tab, "!!document.querySelector('#log-answer h3')"); time.Sleep(200 * time.Millisecond) { // between two looks
		if said := eval[string](p.tab, "document.querySelector('#log-problem').textContent"); said != "" {
			t.Fatal(said)
		}
	}
	program, process := eval[int64](p.tab, "window.memory"), p.processMemory()
	answer := eval[string](p.tab, "document.querySelector('#log-answer').innerText.slice(0, 300)")
	t.Logf("the program has %d MB, the process had %d MB at most: %s", program>>20, process>>20, answer)
	if program > most || process > most {
		t.Errorf("the program has %d bytes, the process had %d at most, want %d", program, process, most)
	}
	if !strings.Contains(answer, "more does not fit into a page") {
		t.Errorf("the page says %q, want that it has not read all", answer)
	}
}

// openMeasured shows the part for logs, whose worker tells its memory.
func openMeasured(t *testing.T) *playgroundPage {
	t.Helper()
	p := openPlayground(t)
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	worker, err := os.ReadFile(filepath.Join(dir, "worker.js"))
	if err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/worker.js" {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = io.WriteString(w, measured+string(worker))
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.url = server.URL + "/"
	p.visit("#part=log", 1280, "light")
	eval[bool](p.tab, `(() => {
		const post = Worker.prototype.postMessage
		Worker.prototype.postMessage = function (message) { this.addEventListener('message', ({ data }) => { if (data.memory) window.memory = data.memory }); return post.call(this, message) }
		return true
	})()`)
	return p
}

// writeLarge writes an access log, packed.
func writeLarge(t *testing.T, path string, lines int) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	packed, _ := gzip.NewWriterLevel(file, gzip.BestSpeed)
	var b bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&b, "192.0.2.%d - - [17/May/2015:%02d:%02d:%02d +0000] \"GET /presentations/%d/of/a/length/that/is/usual HTTP/1.1\" 200 %d \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\"\n",
			i*7%250, i/360_000%24, i/6000%60, i/100%60, i, i%5000)
		if b.Len() > 1<<20 || i == lines-1 {
			if _, err := b.WriteTo(packed); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// processMemory returns the most that the processes of pages have held, in bytes.
func (p *playgroundPage) processMemory() (most int64) {
	p.t.Helper()
	info, err := chromedp.CallBrowser(p.ctx, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, process := range info.ProcessInfo {
		if process.Type == "renderer" {
			most = max(most, peak(p.t, process.ID))
		}
	}
	return most
}

// peak returns the most that a process has held, in bytes.
func peak(t *testing.T, pid int64) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	held, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return held << 10
}
