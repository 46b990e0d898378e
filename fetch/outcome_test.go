package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/fetch"
)

// lie announces more than it sends, and closes the connection.
func lie(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
		conn.Close()
	}
}

func TestEveryURLHasOneResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := func(code int) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
		}
		mux := http.NewServeMux()
		mux.HandleFunc("/ok", hello)
		mux.HandleFunc("/gone", status(410))
		mux.HandleFunc("/missing", status(404))
		mux.HandleFunc("/robots.txt", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "user-agent: *\ndisallow: /secret\n") })
		mux.HandleFunc("/secret", hello)
		mux.HandleFunc("/to-ok", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) })
		mux.HandleFunc("/to-secret", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/secret", http.StatusFound) })
		mux.HandleFunc("/to-ftp", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "ftp://good.example/", http.StatusFound)
		})
		mux.HandleFunc("/to-far", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/"+strings.Repeat("é", 3000), http.StatusFound)
		})
		mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/round", http.StatusMovedPermanently)
		})
		mux.HandleFunc("/long", download(3000, 0))
		mux.HandleFunc("/longer", func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); w.Write(make([]byte, 3000)) })
		n := newNetwork(t, map[string]http.Handler{
			"good.example": mux, "lying.example": free(lie), "broken.example": free(status(500)),
			"drip.example": free(download(100*kib, 1)),
		})
		results := crawl(t, n, fetch.Options{MaxBytes: 2000}, "http://good.example/ok", "http://good.example/gone", "http://good.example/missing",
			"http://good.example/secret", "http://good.example/to-ok", "http://good.example/to-secret", "http://good.example/to-ftp", "http://good.example/to-far",
			"http://good.example/round", "http://good.example/long", "http://good.example/longer", "http://lying.example/", "http://broken.example/",
			"http://nowhere.example/", "ftp://good.example/", "mailto:me", "/relative", "http://", "http://a b/", "http://[::1")
		for url, want := range map[string]string{
			"http://good.example/ok":        "fetched: ",
			"http://good.example/gone":      "refused: status 410 Gone",
			"http://good.example/missing":   "refused: status 404 Not Found",
			"http://good.example/secret":    "skipped: robots.txt of http://good.example disallows it",
			"http://good.example/to-ok":     "fetched: ",
			"http://good.example/to-secret": "skipped: robots.txt of http://good.example disallows it",
			"http://good.example/to-ftp":    `skipped: redirect: scheme "ftp" is not fetched, only http and https`,
			"http://good.example/to-far":    "skipped: redirect: the URL has 18020 bytes, the bound is 8192",
			"http://good.example/round":     "skipped: more redirects than the bound, 5 redirects",
			"http://good.example/long":      "skipped: the body is longer than 2000 bytes",
			"http://good.example/longer":    "skipped: the body is longer than 2000 bytes",
			"http://lying.example/":         "failed: the body ended after 5 of 100 bytes",
			"http://broken.example/":        "failed: status 500 Internal Server Error",
			"http://nowhere.example/":       "failed: robots.txt of http://nowhere.example cannot be read, so nothing is fetched for now: no such host: nowhere.example",
			"ftp://good.example/":           `skipped: scheme "ftp" is not fetched, only http and https`,
			"mailto:me":                     `skipped: scheme "mailto" is not fetched, only http and https`,
			"/relative":                     "skipped: not a URL: it has no scheme; http and https are fetched",
			"http://":                       "skipped: not a URL: it has no host",
			"http://a b/":                   `skipped: not a URL: invalid character " " in host name`,
			"http://[::1":                   "skipped: not a URL: missing ']' in host",
		} {
			if got := fmt.Sprintf("%s: %s", results[url].Outcome, results[url].Reason); got != want {
				t.Errorf("%s\n got %s\nwant %s", url, got, want)
			}
		}
		if r := results["http://good.example/to-ok"]; r.Final != "http://good.example/ok" || r.Bytes != 5 || r.Status != 200 {
			t.Errorf("after a redirect: %+v", r)
		}
	})
}

func TestAnAnswerThatStallsEndsAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{
			"hanging.example": free(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
			"stalled.example": free(func(w http.ResponseWriter, r *http.Request) {
				w.Write([]byte("begin"))
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}),
			"drip.example": free(download(100*kib, 100)), // 1 KiB every 10 s
		})
		results := crawl(t, n, fetch.Options{Timeout: 20 * time.Second}, "http://hanging.example/", "http://stalled.example/", "http://drip.example/")
		for url, want := range map[string]string{
			"http://hanging.example/": "nothing came for 20s", "http://stalled.example/": "nothing came for 20s",
			"http://drip.example/": "the answer took longer than 6m40s",
		} {
			if r := results[url]; r.Outcome != fetch.Failed || r.Reason != want || r.Tries != 4 {
				t.Errorf("%s: got %s after %d tries, %q, want failed after 4, %q", url, r.Outcome, r.Tries, r.Reason, want)
			}
		}
	})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	for name, write := range map[string]func(http.Header){
		"seconds": func(h http.Header) { h.Set("Retry-After", "90") },
		"a date": func(h http.Header) {
			h.Set("Retry-After", time.Now().Add(90*time.Second).UTC().Format(http.TimeFormat))
		},
		"a date, by its clock": func(h http.Header) { skewed(h, 3*time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refused time.Time
				n := newNetwork(t, map[string]http.Handler{"a.example": free(func(w http.ResponseWriter, r *http.Request) {
					if refused.IsZero() {
						refused = time.Now()
						write(w.Header())
						w.WriteHeader(http.StatusTooManyRequests)
					}
				})})
				results := crawl(t, n, fetch.Options{}, pagesOf("a.example", 3)...)
				for url, r := range results {
					if pause := r.Started.Sub(refused); r.Outcome != fetch.Fetched || pause < 89*time.Second {
						t.Errorf("%s: %s, %v after a Retry-After of 90s", url, r.Outcome, pause)
					}
				}
			})
		})
	}
}

// skewed asks for 90 seconds by a clock that is wrong.
func skewed(h http.Header, by time.Duration) {
	h.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
	h.Set("Retry-After", time.Now().Add(by+90*time.Second).UTC().Format(http.TimeFormat))
}

func TestAPauseAboveTheBoundEndsTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7200")
			w.WriteHeader(http.StatusServiceUnavailable)
		}), "b.example": free(hello)})
		results := crawl(t, n, fetch.Options{AtOnce: 1}, append(pagesOf("a.example", 4), "http://b.example/")...)
		if got := len(n.of("a.example")); got != 2 {
			t.Errorf("the host had %d requests, want robots.txt and one page", got)
		}
		want := "a.example asks for no request before 2000-01-01 0"
		for _, url := range pagesOf("a.example", 4) {
			if r := results[url]; r.Outcome != fetch.Failed || !strings.HasPrefix(r.Reason, want) {
				t.Errorf("%s: %s, %q; want failed, %q…", url, r.Outcome, r.Reason, want)
			}
		}
	})
}

// A host that answers 429 to everything gets longer and longer pauses, and is then left alone.
func TestAHostThatAlwaysRefusesIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusTooManyRequests)
		})})
		results := crawl(t, n, fetch.Options{AtOnce: 1}, pagesOf("a.example", 100)...)
		arrivals := n.of("a.example")
		if len(arrivals) != 9 {
			t.Errorf("the host had %d requests, want robots.txt and 8 pages", len(arrivals))
		}
		for i, pause := 2, 2*time.Second; i < len(arrivals); i, pause = i+1, min(2*pause, time.Minute) {
			if got := arrivals[i].at.Sub(arrivals[i-1].at); got < pause {
				t.Errorf("pause %d is %v, want %v", i-1, got, pause)
			}
		}
		for url, r := range results {
			if r.Outcome != fetch.Failed {
				t.Errorf("%s: %s, want failed", url, r.Outcome)
			}
		}
	})
}

func TestPrivateAddressesAreRefusedWhenTheyAreDialed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	server := &http.Server{Handler: http.HandlerFunc(hello)}
	go server.Serve(l)
	defer server.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	n := &network{transport: fetch.NewTransport(false)}
	urls := []string{"http://127.0.0.1:" + port + "/", "http://localhost:" + port + "/", "http://[::ffff:127.0.0.1]:" + port + "/", "http://10.1.2.3/"}
	for _, r := range crawl(t, n, fetch.Options{}, urls...) {
		private, is := errors.AsType[*fetch.PrivateAddressError](r.Err)
		if r.Outcome != fetch.Skipped || !strings.Contains(r.Reason, "private addresses are refused unless allowed") {
			t.Errorf("%s: %s, %q", r.URL, r.Outcome, r.Reason)
		}
		if !is || private.Kind == "" {
			t.Errorf("%s: error %v, want a *PrivateAddressError", r.URL, r.Err)
		}
	}
	n.transport = fetch.NewTransport(true)
	defer n.transport.CloseIdleConnections()
	for _, r := range crawl(t, n, fetch.Options{PerHost: weir.PerSecond(100), Total: weir.PerSecond(100)}, urls[:2]...) {
		if r.Outcome != fetch.Fetched {
			t.Errorf("%s, with private addresses: %s, %q", r.URL, r.Outcome, r.Reason)
		}
	}
}

func TestAnErrorOfPageEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(hello)})
		full := errors.New("disk full")
		err := fetch.Run(t.Context(), fetch.URLs(pagesOf("a.example", 5)...), fetch.Options{Transport: n.transport,
			Page: func(context.Context, *fetch.Page) error { return full },
			Done: func(r fetch.Result) { t.Errorf("a result: %+v", r) }})
		if !errors.Is(err, full) {
			t.Errorf("got %v, want the error of Page", err)
		}
	})
}

func TestAnErrorOfOnePageFailsItsURLAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(hello)})
		long := errors.New("name too long")
		results := crawl(t, n, fetch.Options{Page: func(_ context.Context, p *fetch.Page) error {
			if p.URL.Path == "/1" {
				return fmt.Errorf("save: %w", &fetch.PageError{Err: long})
			}
			return nil
		}}, pagesOf("a.example", 3)...)
		if r := results["http://a.example/1"]; r.Outcome != fetch.Failed || r.Reason != "save: name too long" || !errors.Is(r.Err, long) || r.Tries != 1 {
			t.Errorf("got %+v, want it failed after one try", r)
		}
		if r := results["http://a.example/2"]; r.Outcome != fetch.Fetched {
			t.Errorf("another page is %s (%s)", r.Outcome, r.Reason)
		}
	})
}

// Texts that a server chooses do not make results long.
func TestTextsOfAServerAreCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", strings.Repeat("é", 10_000))
			w.Header().Set("Location", "http://a b/"+strings.Repeat("é", 10_000))
			w.WriteHeader(map[string]int{"/0": 200, "/1": 302}[r.URL.Path])
		})})
		for url, r := range crawl(t, n, fetch.Options{}, pagesOf("a.example", 2)...) {
			if len(r.Type) > 1100 || len(r.Reason) > 1100 || !strings.HasSuffix(r.Type, "é…") {
				t.Errorf("%s: a type of %d bytes and a reason of %d, want about 1024 at most", url, len(r.Type), len(r.Reason))
			}
		}
	})
}

func TestTheEndOfTheContextEndsTheRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		never := func(yield func(fetch.Link) bool) { // a list that is still being typed
			yield(fetch.Link{URL: "http://a.example/"})
			<-ctx.Done()
			time.Sleep(time.Second)
		}
		err := fetch.Run(ctx, never, fetch.Options{Transport: n.transport})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 5*time.Second {
			t.Errorf("%v after %v, want a deadline after 5s", err, time.Since(began))
		}
		time.Sleep(2 * time.Second)
	})
}

func TestAListedURLIsFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(hello)})
		var done []string
		err := fetch.Run(t.Context(), fetch.URLs("http://a.example/x", "HTTP://user@A.example:80/x#top", "http://a.example/known", "http://a.example"),
			fetch.Options{Transport: n.transport, Known: func(l fetch.Link) bool { return l == fetch.Link{URL: "http://a.example/known"} },
				Done: func(r fetch.Result) { done = append(done, r.URL) }})
		if want := []string{"http://a.example/x", "http://a.example/"}; err != nil || !slices.Equal(done, want) {
			t.Errorf("got %q, %v, want %q", done, err, want)
		}
	})
}

func TestALongListIsReadAsThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(hello)})
		done := 0
		var read atomic.Int64
		list := func(yield func(fetch.Link) bool) {
			for _, url := range pagesOf("a.example", 50) {
				read.Add(1)
				if !yield(fetch.Link{URL: url}) {
					return
				}
			}
		}
		err := fetch.Run(t.Context(), list, fetch.Options{Transport: n.transport, Queue: 5, Done: func(fetch.Result) {
			if done++; read.Load() > int64(done)+10 {
				t.Errorf("%d URLs are read and %d done, want at most 10 more", read.Load(), done)
			}
		}})
		if err != nil || done != 50 {
			t.Errorf("%d results, %v; want 50", done, err)
		}
	})
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for _, o := range []fetch.Options{{AtOnce: -1}, {MaxBytes: -1}, {Timeout: -1}, {PerHost: weir.Rate{Count: -1, Period: 1}}, {Total: weir.Rate{Count: 1}},
		{Bandwidth: weir.Rate{Count: 1, Period: -1}}, {Agent: "a\nb"}} {
		err := fetch.Run(t.Context(), fetch.URLs(), o)
		if _, option := errors.AsType[*weir.OptionError](err); !option {
			t.Errorf("%+v: got %v, want an option error", o, err)
		}
	}
}
