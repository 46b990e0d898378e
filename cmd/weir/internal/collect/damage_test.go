package collect_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/collect"
	"github.com/weirflow/weir/fetch"
)

// web answers every request for a page with a text.
type web string

func (text web) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: 200, Request: r, Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader(string(text)))}
	if r.URL.Path == "/robots.txt" {
		answer.StatusCode = 404
	}
	return answer, nil
}

// crawl fetches URLs into a folder, and returns the results.
func crawl(t *testing.T, dir string, from web, urls ...string) map[string]fetch.Result {
	t.Helper()
	f := open(t, dir)
	defer f.Close()
	results := map[string]fetch.Result{}
	err := fetch.Run(context.Background(), fetch.URLs(urls...), fetch.Options{
		Transport: from, PerHost: weir.PerSecond(1000), Total: weir.PerSecond(1000), Page: f.Page(true), Depth: 1,
		Known: func(l fetch.Link) bool { return f.Known(l.URL) },
		Done:  func(r fetch.Result) { record(t, f, r); results[r.URL] = r },
	})
	if err != nil {
		t.Errorf("the crawl ended: %v", err)
	}
	return results
}

// A page that cannot have its name fails, and the crawl goes on. Another crawl of the folder has only that page to fetch.
func TestAPageThatCannotBeNamedFailsAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "taken.example"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a.", 120) + "long.example:65535" // a name of more than 255 bytes, with the port
	web := web("<a href='http://" + long + "/'>")
	urls := []string{"http://" + collect.JournalName + "/", "http://taken.example/", "http://long.example/", "http://good.example/"}
	results := crawl(t, dir, web, urls...)
	for url, want := range map[string]fetch.Outcome{urls[0]: fetch.Failed, urls[1]: fetch.Failed, urls[2]: fetch.Fetched, urls[3]: fetch.Fetched, "http://" + long + "/": fetch.Fetched} {
		if r := results[url]; r.Outcome != want {
			t.Errorf("%s: %q (%s), want %s", url, r.Outcome, r.Reason, want)
		}
	}
	if again := crawl(t, dir, web, urls...); len(again) != 2 {
		t.Errorf("the second crawl has %d results, want those of the two pages without a name", len(again))
	}
}

// A journal with a line that is too long to be read can be used.
func TestAJournalWithALineThatIsTooLongIsUsable(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	record(t, f, fetch.Result{URL: "http://a/1", Outcome: fetch.Fetched})
	f.Close()
	journal, err := os.OpenFile(filepath.Join(dir, collect.JournalName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(journal, `{"url":"http://a/long","outcome":"fetched","links":["http://a/`+strings.Repeat("x", 65<<20)+`"]}`+"\n")
	journal.Close()
	f = open(t, dir)
	if !slices.Equal(f.Ignored(), []int{3}) || !f.Known("http://a/1") || f.Known("http://a/long") {
		t.Errorf("ignored lines %v, done %v %v; want line 3 ignored, and its page not done", f.Ignored(), f.Known("http://a/1"), f.Known("http://a/long"))
	}
	record(t, f, fetch.Result{URL: "http://a/2", Outcome: fetch.Fetched})
	f.Close()
	if f = open(t, dir); !f.Known("http://a/2") || len(f.Ignored()) != 1 {
		t.Error("a line after the long one is not kept")
	}
}

// A result of any size makes a line that can be read.
func TestEveryLineThatIsWrittenCanBeRead(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	record(t, f, fetch.Result{URL: "http://a/", Outcome: fetch.Fetched, Links: slices.Repeat([]string{"http://a/" + strings.Repeat("x", 8000)}, 10_000)})
	f.Close()
	if f = open(t, dir); !f.Known("http://a/") || len(f.Ignored()) > 0 || f.Followed() != 5000 {
		t.Errorf("done %v, ignored lines %v, %d links; want it done, with the 5000 links that fit", f.Known("http://a/"), f.Ignored(), f.Followed())
	}
}
