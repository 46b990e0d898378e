package fetch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/collect"
	"github.com/weirflow/weir/fetch"
)

// site is a web server on a loopback address of its own, which is a domain of its own for a pace.
type site struct {
	url string

	mu    sync.Mutex
	asked map[string]int // requests by path, without robots.txt
}

// newSite serves on 127.0.0.N with the handler. Without one, it serves a page that holds its path.
func newSite(t *testing.T, n int, handler http.HandlerFunc) *site {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", n))
	if err != nil {
		t.Fatalf("this system has no address 127.0.0.%d: %v", n, err)
	}
	s := &site{url: "http://" + l.Addr().String(), asked: map[string]int{}}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if r.URL.Path != "/robots.txt" {
			s.asked[r.URL.Path]++
		}
		s.mu.Unlock()
		switch {
		case handler != nil:
			handler(w, r)
		case r.URL.Path == "/robots.txt":
			http.NotFound(w, r)
		default:
			fmt.Fprint(w, "page ", r.URL.Path)
		}
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return s
}

// requests returns the number of requests for pages.
func (s *site) requests() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.asked {
		n += of
	}
	return n
}

// urlsOf returns n URLs of each site, one a line.
func urlsOf(n int, sites ...*site) string {
	var text strings.Builder
	for i := range n {
		for _, s := range sites {
			fmt.Fprintf(&text, "%s/%d\n", s.url, i)
		}
	}
	return text.String()
}

// journal returns the lines of the journal by URL, and checks that a URL is fetched once.
func journal(t *testing.T, dir string) map[string]collect.Line {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, collect.JournalName))
	if err != nil {
		t.Fatal(err)
	}
	return fetchedLines(t, string(text))
}

func fetchedLines(t *testing.T, text string) map[string]collect.Line {
	t.Helper()
	lines := map[string]collect.Line{}
	for line := range strings.Lines(text) {
		var l collect.Line
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if lines[l.URL].Outcome == fetch.Fetched {
			t.Errorf("%s is fetched, and has another line", l.URL)
		}
		if l.URL != "" {
			lines[l.URL] = l
		}
	}
	return lines
}

// weirFetch runs the command in this process.
func weirFetch(list string, arguments ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	code = runFetch(list, &stdout, &stderr, append([]string{"--per-host", "500/s", "--total", "1000/s"}, arguments...)...)
	return code, stdout.String(), stderr.String()
}

func runFetch(list string, out, errs io.Writer, arguments ...string) (code int) {
	cmd := Command()
	cmd.SetArgs(append([]string{"--allow-private"}, arguments...))
	cmd.SetIn(strings.NewReader(list))
	cmd.SetOut(out)
	cmd.SetErr(errs)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.Execute(); err != nil {
		code = cli.Report(errs, err)
	}
	return code
}

func TestFetchSavesPagesAndALineForEachURL(t *testing.T) {
	a := newSite(t, 2, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			io.WriteString(w, "user-agent: *\ndisallow: /secret\n")
		case "/gone":
			w.WriteHeader(http.StatusGone)
		default:
			io.WriteString(w, "the page")
		}
	})
	dir := filepath.Join(t.TempDir(), "pages")
	code, out, errs := weirFetch(a.url+"/page\n\n# a comment\nftp://x/\n"+a.url+"/secret\n"+a.url+"/gone\n"+a.url+"/page\n", "-o", dir)
	if code != 1 || !strings.Contains(errs, "weir: fetched 1 page, 8 bytes, in ") || !strings.Contains(errs, "; 2 skipped; 1 refused; 1 listed again\nweir: fetch: 1 URL refused by the server\nhint: the reasons are in ") {
		t.Errorf("exit %d, %s", code, errs)
	}
	lines := fetchedLines(t, out)
	for url, want := range map[string]fetch.Outcome{a.url + "/page": fetch.Fetched, "ftp://x/": fetch.Skipped, a.url + "/secret": fetch.Skipped, a.url + "/gone": fetch.Refused} {
		if l := lines[url]; l.Outcome != want || l.Outcome != fetch.Fetched && l.Reason == "" {
			t.Errorf("%s: %+v, want %s", url, l, want)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(lines[a.url+"/page"].File)))
	if err != nil || string(text) != "the page" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if fmt.Sprint(journal(t, dir)) != fmt.Sprint(lines) {
		t.Error("the journal differs from the output")
	}
}

func TestTheLongestCrawlDelayIsAFlag(t *testing.T) {
	slow := newSite(t, 2, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "user-agent: *\ncrawl-delay: 1,5s\n")
		}
	})
	for bound, want := range map[string]string{"1s": "skipped", "1500ms": "fetched"} {
		dir := t.TempDir()
		list := filepath.Join(dir, "urls.txt")
		if err := os.WriteFile(list, []byte(urlsOf(1, slow)), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd, out := fetchProcess(t, list, "-o", dir, "--allow-private", "--max-crawl-delay", bound)
		io.Copy(io.Discard, out)
		_ = cmd.Wait() // the journal says what became of the URL
		if got := journal(t, dir)[slow.url+"/0"]; string(got.Outcome) != want {
			t.Errorf("--max-crawl-delay %s: %s (%s), want %s; %s", bound, got.Outcome, got.Reason, want, cmd.Stderr)
		}
	}
}

func TestFetchGoesOnWhereItEnded(t *testing.T) {
	broken := true
	a := newSite(t, 2, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt":
			http.NotFound(w, r)
		case r.URL.Path == "/1" && broken:
			w.Header().Set("Retry-After", "100000")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, "page ", r.URL.Path)
		}
	})
	dir := t.TempDir()
	code, _, errs := weirFetch(urlsOf(2, a), "-o", dir, "--at-once", "1")
	if code != 1 || !strings.Contains(errs, "fetch: 1 URL failed\nhint: the same command tries again\nhint: the reasons are in ") {
		t.Errorf("exit %d, %s", code, errs)
	}
	broken = false
	code, out, errs := weirFetch(urlsOf(3, a), "-o", dir)
	if lines := fetchedLines(t, out); code != 0 || len(lines) != 2 || !strings.Contains(errs, "; 1 done before") {
		t.Errorf("the second run: exit %d, %d lines, %s", code, len(lines), errs)
	}
	if a.asked["/0"] != 1 || a.asked["/1"] != 2 || a.asked["/2"] != 1 {
		t.Errorf("requests %v, want the failed page twice and the others once", a.asked)
	}
}

func TestFetchFollowsLinksAndGoesOnWithThem(t *testing.T) {
	a := newSite(t, 2, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		for i := range 3 {
			fmt.Fprintf(w, "<!doctype html><a href='%s%d'>", r.URL.Path, i)
		}
	})
	dir := t.TempDir()
	if code, out, errs := weirFetch(a.url+"/\n", "-o", dir, "--follow", "--depth", "2", "--count", "7"); code != 0 || len(fetchedLines(t, out)) != 8 {
		t.Errorf("exit %d, %d lines, want one and 7 links: %s", code, len(fetchedLines(t, out)), errs)
	}
	// Without its last lines, the journal is that of an interrupted run.
	path := filepath.Join(dir, collect.JournalName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut := bytes.Join(bytes.SplitAfter(text, []byte("\n"))[:4], nil)
	if err := os.WriteFile(path, cut, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := weirFetch(a.url+"/\n", "-o", dir, "--follow", "--depth", "2", "--count", "7"); code != 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
	if lines := journal(t, dir); len(lines) != 8 {
		t.Errorf("after the second run the journal has %d URLs, want 8", len(lines))
	}
}

// fullDisk is an output that takes nothing.
type fullDisk struct{ err error }

func (d fullDisk) Write([]byte) (int, error) { return 0, d.err }

func TestAFetchWhoseOutputFailsEnds(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code int
		said string
	}{
		"disk full":   {syscall.ENOSPC, 1, "weir: fetch: standard output: no space left on device\nhint: is the disk full, or was the output closed?\nhint: the same command goes on"},
		"reader gone": {syscall.EPIPE, 141, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := newSite(t, 2, nil)
			var errs bytes.Buffer
			code := runFetch(urlsOf(50, a), fullDisk{test.err}, &errs, "-o", t.TempDir())
			if code != test.code || !strings.Contains(errs.String(), test.said) || a.requests() > 2 {
				t.Errorf("exit %d after %d requests, %q; want exit %d, %q", code, a.requests(), errs.String(), test.code, test.said)
			}
		})
	}
}

func TestTwoFetchesDoNotShareAFolder(t *testing.T) {
	dir := t.TempDir()
	first, err := collect.Open(dir, lockJournal)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	code, _, errs := weirFetch("http://127.0.0.2:1/\n", "-o", dir)
	if want := "weir: fetch: -o " + dir + ": another weir fetch uses the folder\nhint: wait for the other one, or give another folder\n"; code != 1 || errs != want {
		t.Errorf("exit %d, %q, want %q", code, errs, want)
	}
}

// fetchProcess starts the real program. Its list comes from a file.
func fetchProcess(t *testing.T, arguments ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args = append([]string{"weir", "fetch"}, arguments...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = new(bytes.Buffer)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, bufio.NewReader(out)
}

// A process that is killed, at any point, loses no URL. It repeats at most what was in flight.
func TestAKilledFetchLosesNothing(t *testing.T) {
	const pages, atOnce = 40, 2
	page := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, "<!doctype html><a href='/linked%s'>page %s", r.URL.Path, r.URL.Path)
		w.(http.Flusher).Flush()
		time.Sleep(10 * time.Millisecond)
		fmt.Fprint(w, strings.Repeat(" and more", 1000))
	}
	sites := []*site{newSite(t, 2, page), newSite(t, 3, page), newSite(t, 4, page)}
	dir := t.TempDir()
	urls := filepath.Join(dir, "urls.txt")
	if err := os.WriteFile(urls, []byte(urlsOf(pages, sites...)), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := []string{urls, "-o", filepath.Join(dir, "pages"), "--allow-private", "--per-host", "100/s", "--total", "1000/s", "--follow", "--depth", "1"}
	kills := 0
	for _, lines := range []int{1, 7, 30, 50} {
		cmd, out := fetchProcess(t, arguments...)
		for range lines {
			if _, err := out.ReadString('\n'); err != nil {
				t.Fatalf("after %d kills: %v", kills, err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		kills++
	}
	cmd, out := fetchProcess(t, arguments...)
	io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the last run: %v: %s", err, cmd.Stderr)
	}
	all := journal(t, filepath.Join(dir, "pages"))
	repeated := 0
	for _, s := range sites {
		repeated += s.requests() - 2*pages
		for i := range pages {
			for _, path := range []string{fmt.Sprintf("/%d", i), fmt.Sprintf("/linked/%d", i)} {
				l := all[s.url+path]
				text, err := os.ReadFile(filepath.Join(dir, "pages", filepath.FromSlash(l.File)))
				if l.Outcome != fetch.Fetched || err != nil || !strings.Contains(string(text), "page "+path+" ") || !strings.HasSuffix(string(text), "more") {
					t.Errorf("%s%s: %+v, file of %d bytes, %v", s.url, path, l, len(text), err)
				}
			}
		}
	}
	if most := kills * atOnce * len(sites); repeated < 0 || repeated > most {
		t.Errorf("%d requests were repeated, want at most the %d that can have been in flight", repeated, most)
	}
}

func TestAnInterruptedFetchSaysHowToGoOn(t *testing.T) {
	a := newSite(t, 2, nil)
	dir := t.TempDir()
	urls := filepath.Join(dir, "urls.txt")
	if err := os.WriteFile(urls, []byte(urlsOf(100, a)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, out := fetchProcess(t, urls, "-o", filepath.Join(dir, "pages"), "--allow-private", "--per-host", "10/s")
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, out)
	cmd.Wait()
	if said := cmd.Stderr.(*bytes.Buffer).String(); !strings.Contains(said, " left\ninterrupted; the same command goes on where this one ended\n") {
		t.Errorf("it said %q", said)
	}
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit %d, want 130", code)
	}
}

func TestFetchKeepsItsPaceOnTheRealClock(t *testing.T) {
	a := newSite(t, 2, nil)
	dir := t.TempDir()
	if code, _, errs := weirFetch(urlsOf(8, a), "-o", dir, "--per-host", "20/s"); code != 0 {
		t.Fatal(errs)
	}
	var starts []time.Time
	for _, l := range journal(t, dir) {
		starts = append(starts, l.Started)
	}
	slices.SortFunc(starts, time.Time.Compare)
	for i := 1; i < len(starts); i++ {
		if gap := starts[i].Sub(starts[i-1]); gap < 50*time.Millisecond {
			t.Errorf("requests %d and %d were written within %v, want 50ms", i-1, i, gap)
		}
	}
}

// slowHost asks for a Crawl-delay on one host, and for nothing on the others.
type slowHost string

func (slow slowHost) RoundTrip(r *http.Request) (*http.Response, error) {
	text := ""
	if r.URL.Host == string(slow) {
		text = "user-agent: *\ncrawl-delay: 30\n"
	}
	return &http.Response{StatusCode: 200, Request: r, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, nil
}

// Of 13 pages of one host and 39 of three others, one a second each, those of the host with a Crawl-delay take longest.
func TestFetchShowsTheTimeOfTheSlowestDomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var urls []string
		for i := range 13 {
			for _, host := range []string{"slow", "a", "b", "c"} {
				urls = append(urls, fmt.Sprintf("http://%s.example/%d", host, i))
			}
		}
		tally := &tally{}
		tally.begin(time.Now())
		tally.listed(int64(len(urls)))
		tally.whole()
		time.AfterFunc(40*time.Second, func() {
			if got := tally.text(time.Now()); !strings.HasPrefix(got, "40 URLs, 12 left, ") || !strings.HasSuffix(got, ", about 5m50s") {
				t.Errorf("350s before the last request: got %q, want 40 URLs, 12 left, about 5m50s", got)
			}
		})
		began := time.Now()
		err := fetch.Run(t.Context(), fetch.URLs(urls...), fetch.Options{Transport: slowHost("slow.example"), Progress: &tally.rest, Done: tally.add})
		if took := time.Since(began); err != nil || took.Round(time.Second) != 390*time.Second {
			t.Errorf("%v after %v, want 6m30s", err, took)
		}
	})
}

func TestFetchCompletesItsFlags(t *testing.T) {
	var out bytes.Buffer
	cmd := Command()
	cmd.SetArgs([]string{"__complete", "--per-host", ""})
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(strings.Split(out.String(), "\n"), "1/5s") {
		t.Errorf("got %q, want rates", out.String())
	}
}
