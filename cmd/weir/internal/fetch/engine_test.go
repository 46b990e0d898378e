package fetch

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

// crawler is a process that fetches into a folder.
type crawler struct {
	dir  string
	said *bytes.Buffer
	wait func() error
}

// sharing starts a crawler of the URLs on an engine.
func sharing(t *testing.T, urls []string, engine string, arguments ...string) crawler {
	t.Helper()
	dir := t.TempDir()
	list := filepath.Join(dir, "urls.txt")
	if err := os.WriteFile(list, []byte(strings.Join(urls, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, out := fetchProcess(t, append([]string{list, "-o", dir, "--allow-private", "--engine", engine}, arguments...)...)
	return crawler{dir, cmd.Stderr.(*bytes.Buffer), func() error { io.Copy(io.Discard, out); return cmd.Wait() }}
}

// starts returns when the pages of a site, or of all, were asked for, in order.
func starts(t *testing.T, site string, crawlers ...crawler) (at []time.Time) {
	t.Helper()
	for _, c := range crawlers {
		for url, line := range journal(t, c.dir) {
			if strings.HasPrefix(url, site) {
				at = append(at, line.Started)
			}
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}

// together runs two crawlers, each of which has half of the 20 pages of two sites. It returns the sites, too.
func together(t *testing.T, engine string, arguments ...string) ([]crawler, []*site) {
	t.Helper()
	sites := []*site{newSite(t, 2, nil), newSite(t, 3, nil)}
	urls := strings.Fields(urlsOf(10, sites...))
	crawlers := []crawler{sharing(t, urls[:10], engine, arguments...), sharing(t, urls[10:], engine, arguments...)}
	for _, c := range crawlers {
		if err := c.wait(); err != nil {
			t.Errorf("a crawler ended with %v: %s", err, c.said)
		}
	}
	return crawlers, sites
}

// Two processes share the pace of a host, on Redis and in a database.
func TestTwoCrawlersKeepOnePace(t *testing.T) {
	for name, engine := range map[string]func(t *testing.T) string{
		"Redis":  func(t *testing.T) string { return "redis://" + redistest.Start(t).Addr },
		"SQLite": func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "weir.db") },
	} {
		t.Run(name, func(t *testing.T) {
			crawlers, sites := together(t, engine(t), "--per-host", "5/s")
			for _, s := range sites {
				at := starts(t, s.url, crawlers...)
				if len(at) != 10 {
					t.Errorf("%d pages of %s were asked for, want 10", len(at), s.url)
				}
				for i := 1; i < len(at); i++ {
					if got := at[i].Sub(at[i-1]); got < 200*time.Millisecond {
						t.Errorf("two requests to %s within %v, want 200ms", s.url, got)
					}
				}
			}
		})
	}
}

// The total holds for instants of release. A request may be written later, so that it comes closer to the next one.
func TestTwoCrawlersKeepOneTotal(t *testing.T) {
	crawlers, _ := together(t, "redis://"+redistest.Start(t).Addr, "--per-host", "20/s", "--total", "4/s")
	all := starts(t, "", crawlers...)
	if took, least := all[len(all)-1].Sub(all[0]), 19*time.Second/4; len(all) != 20 || took < least-time.Second {
		t.Errorf("%d pages were asked for within %v, want 20 and about %v at least", len(all), took, least)
	}
}

func TestACrawlerSaysThatItsServerIsAway(t *testing.T) {
	server, site := redistest.Start(t), newSite(t, 2, nil)
	c := sharing(t, strings.Fields(urlsOf(300, site)), "redis://"+server.Addr, "--per-host", "20/s")
	awaitRequests(t, site, 3)
	server.Kill()
	began := time.Now()
	err := c.wait()
	if took := time.Since(began); err == nil || took < 10*time.Second || took > 30*time.Second {
		t.Errorf("the crawler ended with %v after %v, want an error after 10s", err, took)
	}
	if text := c.said.String(); !strings.Contains(text, "weir: fetch: --engine: away for 10s: ") || !strings.Contains(text, "\nhint: is the server running") {
		t.Errorf("it said %q", text)
	}
}

// While Redis is away, each of two crawlers has half of the pace.
func TestACrawlerGoesOnAtItsPartOfThePaceWhileRedisIsAway(t *testing.T) {
	server, site := redistest.Start(t), newSite(t, 2, nil)
	c := sharing(t, strings.Fields(urlsOf(40, site)), "redis://"+server.Addr, "--per-host", "20/s", "--on-failure", "local", "--peers", "2", "--deadline", "50ms")
	awaitRequests(t, site, 3)
	server.Stop()
	defer server.Cont()
	if err := c.wait(); err != nil {
		t.Errorf("the crawler ended with %v: %s", err, c.said)
	}
	last := starts(t, "", c)
	for i := 1; i < len(last); i++ {
		if pause := last[i].Sub(last[i-1]); pause > 5*time.Second {
			t.Errorf("request %d came %v after the one before", i, pause)
		}
	}
	if last = last[len(last)-20:]; last[19].Sub(last[0]) < 19*time.Second/10 {
		t.Errorf("20 requests took %v without Redis, want %v at least, at half the pace", last[19].Sub(last[0]), 19*time.Second/10)
	}
}

// awaitRequests waits until a site was asked for n pages.
func awaitRequests(t *testing.T, s *site, n int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); s.requests() < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d requests came within 30s, want %d", s.requests(), n)
		}
	}
}
