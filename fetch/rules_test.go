package fetch_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/fetch"
)

// answerRobots answers with a status and a text to /robots.txt, and with a page to anything else.
func answerRobots(status int, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			w.WriteHeader(status)
			io.WriteString(w, text)
			return
		}
		hello(w, r)
	})
}

func TestTheStatusOfRobotsDecides(t *testing.T) {
	const forbidding = "user-agent: *\ndisallow: /\n"
	for status, want := range map[int]fetch.Outcome{
		200: fetch.Skipped, 204: fetch.Fetched, 400: fetch.Fetched, 401: fetch.Fetched, 403: fetch.Fetched, 404: fetch.Fetched, 410: fetch.Fetched,
		429: fetch.Failed, 500: fetch.Failed, 501: fetch.Failed, 503: fetch.Failed,
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t, map[string]http.Handler{"a.example": answerRobots(status, forbidding)})
			for _, r := range crawl(t, n, fetch.Options{}, pagesOf("a.example", 3)...) {
				if r.Outcome != want {
					t.Errorf("robots.txt answers %d: %s is %s (%s), want it %s", status, r.URL, r.Outcome, r.Reason, want)
				}
			}
			if asked := len(n.of("a.example")); want == fetch.Failed && asked != 4 {
				t.Errorf("robots.txt answers %d: %d requests, want 4 for robots.txt alone", status, asked)
			}
		})
	}
}

func TestRobotsThatComesBackIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		n := newNetwork(t, map[string]http.Handler{"a.example": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch asked++; {
			case r.URL.Path != "/robots.txt":
				hello(w, r)
			case asked <= 2:
				w.Header().Set("Retry-After", "300")
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
				io.WriteString(w, "user-agent: *\ndisallow: /1\n")
			}
		})})
		results := crawl(t, n, fetch.Options{}, pagesOf("a.example", 3)...)
		if results["http://a.example/0"].Outcome != fetch.Fetched || results["http://a.example/1"].Outcome != fetch.Skipped {
			t.Errorf("got %+v, want the rules kept", results)
		}
		if all := n.of(""); all[2].at.Sub(all[0].at) < 10*time.Minute {
			t.Errorf("robots.txt was read after %v, want twice 5m", all[2].at.Sub(all[0].at))
		}
	})
}

// The rules at the end of up to five redirects, on other hosts too, bind the first host.
func TestRobotsFollowsFiveRedirects(t *testing.T) {
	for hops, want := range map[int]fetch.Outcome{1: fetch.Skipped, 5: fetch.Skipped, 6: fetch.Fetched} {
		synctest.Test(t, func(t *testing.T) {
			hosts := map[string]http.Handler{}
			for i := range hops + 1 {
				hosts[fmt.Sprintf("h%d.example", i)] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case i > 0 && r.URL.Path == "/page" || i == 0 && r.URL.Path == "/page":
						hello(w, r)
					case i == hops:
						io.WriteString(w, "user-agent: *\ndisallow: /\n")
					default:
						http.Redirect(w, r, fmt.Sprintf("http://h%d.example/elsewhere", i+1), http.StatusFound)
					}
				})
			}
			n := newNetwork(t, hosts)
			if r := crawl(t, n, fetch.Options{}, "http://h0.example/page")["http://h0.example/page"]; r.Outcome != want {
				t.Errorf("%d redirects: %s (%s), want %s", hops, r.Outcome, r.Reason, want)
			}
		})
	}
}

func TestRobotsIsReadUpTo500KiB(t *testing.T) {
	for name, size := range map[string]int{"within": 400 * kib, "beyond": 501 * kib} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				text := "user-agent: *\n" + strings.Repeat("# a comment.....\n", size/17) + "\ndisallow: /\n"
				n := newNetwork(t, map[string]http.Handler{"a.example": withRobots(text, hello)})
				want := fetch.Skipped
				if name == "beyond" {
					want = fetch.Fetched
				}
				if r := crawl(t, n, fetch.Options{MaxBytes: 100}, "http://a.example/")["http://a.example/"]; r.Outcome != want {
					t.Errorf("a rule after %d bytes: %s, want %s", size, r.Outcome, want)
				}
			})
		})
	}
}

// A site whose robots.txt redirects to that of another has its rules, without another request if they are known.
func TestKnownRulesAreNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{
			"a.example": withRobots("user-agent: *\ndisallow: /1$\n", hello),
			"b.example": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://a.example/robots.txt", http.StatusMovedPermanently)
			}),
		})
		results := crawl(t, n, fetch.Options{}, append(pagesOf("a.example", 20), "http://b.example/1")...)
		if r := results["http://b.example/1"]; r.Outcome != fetch.Skipped {
			t.Errorf("b.example: %s (%s), want skipped by the rules of a.example", r.Outcome, r.Reason)
		}
		if got := len(n.of("a.example")); got != 20 { // robots.txt, and the pages except one
			t.Errorf("a.example had %d requests, want 20", got)
		}
	})
}

// Two sites whose robots.txt redirect to each other wait for neither.
func TestRobotsThatRedirectToEachOtherEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := func(host string) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/robots.txt" {
					http.Redirect(w, r, "http://"+host+"/robots.txt", http.StatusFound)
				}
			})
		}
		n := newNetwork(t, map[string]http.Handler{"a.example": to("b.example"), "b.example": to("a.example")})
		for url, r := range crawl(t, n, fetch.Options{}, "http://a.example/", "http://b.example/") {
			if r.Outcome != fetch.Fetched {
				t.Errorf("%s: %s (%s), want it fetched, because there are no rules", url, r.Outcome, r.Reason)
			}
		}
	})
}

func TestRobotsIsReadAgainAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		texts := []string{"", "user-agent: *\ndisallow: /\n"}
		n := newNetwork(t, map[string]http.Handler{"a.example": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				io.WriteString(w, texts[0])
				texts = texts[1:]
				return
			}
			hello(w, r)
		})})
		results := crawl(t, n, fetch.Options{PerHost: weir.Per(1, 10*time.Hour)}, pagesOf("a.example", 4)...)
		for i, want := range []fetch.Outcome{fetch.Fetched, fetch.Fetched, fetch.Skipped, fetch.Skipped} { // after 0, 10, 20 and 30 h
			if r := results[fmt.Sprintf("http://a.example/%d", i)]; r.Outcome != want {
				t.Errorf("page %d: %s (%s), want %s", i, r.Outcome, r.Reason, want)
			}
		}
	})
}

func TestACrawlDelayOnlyRaisesTheGap(t *testing.T) {
	for delay, want := range map[string]time.Duration{"0.2": time.Second, "5": 5 * time.Second, "60": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t, map[string]http.Handler{"a.example": withRobots("user-agent: *\ncrawl-delay: "+delay+"\n", hello), "b.example": free(hello)})
			began := time.Now()
			results := crawl(t, n, fetch.Options{}, append(pagesOf("a.example", 4), pagesOf("b.example", 4)...)...)
			wantSpacing(t, "a.example", n.of("a.example"), want)
			if took := time.Since(began); took > 5*want+time.Second {
				t.Errorf("Crawl-delay %s: it took %v, want %v", delay, took, 4*want)
			}
			for url, r := range results {
				if r.Outcome != fetch.Fetched {
					t.Errorf("%s: %s", url, r.Outcome)
				}
			}
		})
	}
}

func TestACrawlDelayAboveTheBoundSkipsTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": withRobots("user-agent: *\ncrawl-delay: 600\n", hello), "b.a.example": free(hello)})
		results := crawl(t, n, fetch.Options{}, "http://a.example/", "http://b.a.example/")
		const want = "robots.txt of http://a.example asks for a Crawl-delay of 10m0s, the bound is 1m0s"
		if r := results["http://a.example/"]; r.Outcome != fetch.Skipped || r.Reason != want {
			t.Errorf("got %s, %q; want skipped, %q", r.Outcome, r.Reason, want)
		}
		if r := results["http://b.a.example/"]; r.Outcome != fetch.Fetched {
			t.Errorf("another host of the domain is %s, want fetched", r.Outcome)
		}
	})
}

// strict enforces a fixed window and announces it.
type strict struct {
	limit    int
	window   time.Duration
	announce func(h http.Header, limit, remaining int, reset time.Duration, now time.Time)

	began   time.Time
	used    int
	refused int
	answers int
}

func (s *strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	now := time.Now()
	if s.answers++; now.Sub(s.began) >= s.window {
		s.began, s.used = now, 0
	}
	s.used++
	reset := s.began.Add(s.window).Sub(now)
	if s.announce(w.Header(), s.limit, max(s.limit-s.used, 0), reset, now); s.used > s.limit {
		if s.refused++; s.answers > 1 {
			w.Header().Set("Retry-After", fmt.Sprint(int((reset+time.Second-1)/time.Second)))
		}
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// A host that announces its limit, in any form, never has to refuse: the pace is slower than ours as soon as it says so.
func TestAnnouncedLimitsAreKept(t *testing.T) {
	seconds := func(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
	for name, announce := range map[string]func(h http.Header, limit, remaining int, reset time.Duration, now time.Time){
		"draft 6": func(h http.Header, l, r int, reset time.Duration, _ time.Time) {
			h.Set("RateLimit-Limit", fmt.Sprint(l))
			h.Set("RateLimit-Remaining", fmt.Sprint(r))
			h.Set("RateLimit-Reset", fmt.Sprint(seconds(reset)))
		},
		"draft 7": func(h http.Header, l, r int, reset time.Duration, _ time.Time) {
			h.Set("RateLimit", fmt.Sprintf("limit=%d, remaining=%d, reset=%d", l, r, seconds(reset)))
			h.Set("RateLimit-Policy", fmt.Sprintf("%d;w=30", l))
		},
		"draft 11": func(h http.Header, l, r int, reset time.Duration, _ time.Time) {
			h.Set("RateLimit", fmt.Sprintf(`"burst";r=%d;t=%d`, r, seconds(reset)))
			h.Set("RateLimit-Policy", fmt.Sprintf(`"burst";q=%d;w=30`, l))
		},
		"epoch": func(h http.Header, l, r int, reset time.Duration, now time.Time) {
			h.Set("X-RateLimit-Limit", fmt.Sprint(l))
			h.Set("X-RateLimit-Remaining", fmt.Sprint(r))
			h.Set("X-RateLimit-Reset", fmt.Sprint(now.Add(reset).Unix()+1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(10 * 366 * 24 * time.Hour) // virtual time begins in 2000, when epochs looked like durations
				s := &strict{limit: 10, window: 30 * time.Second, announce: announce}
				n := newNetwork(t, map[string]http.Handler{"a.example": s})
				results := crawl(t, n, fetch.Options{PerHost: weir.PerSecond(5)}, pagesOf("a.example", 45)...)
				for url, r := range results {
					if r.Outcome != fetch.Fetched {
						t.Errorf("%s: %s (%s)", url, r.Outcome, r.Reason)
					}
				}
				if s.refused > 0 {
					t.Errorf("the host refused %d requests, want none", s.refused)
				}
			})
		})
	}
}
