package fetch_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/fetch"
	"github.com/weirflow/weir/internal/randtest"
)

// hostile is a site that does what it can to hold up a crawl. What it does at a URL depends on the seed alone.
type hostile struct {
	seed uint64
	bomb []byte // 8 MiB, compressed
}

func newHostile(seed uint64) *hostile {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	w.Write(make([]byte, 8<<20))
	w.Close()
	return &hostile{seed, bomb.Bytes()}
}

// random returns the choices for a URL.
func (h *hostile) random(url string) *rand.Rand {
	sum := fnv.New64a()
	io.WriteString(sum, url)
	return rand.New(rand.NewPCG(h.seed, sum.Sum64()))
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	random := h.random(r.Host + r.URL.RequestURI())
	if r.URL.Path == "/robots.txt" && random.IntN(3) > 0 {
		io.WriteString(w, h.robots(random))
		return
	}
	switch random.IntN(12) {
	case 0:
		http.Redirect(w, r, h.elsewhere(random), http.StatusFound)
	case 1:
		w.WriteHeader([]int{404, 429, 500, 503, 304, 206, 999}[random.IntN(7)])
	case 2:
		w.Header().Set("Retry-After", []string{"-1", "1e9", "99999999999999999999", "120", "soon", "Fri, 31 Dec 9999 23:59:59 GMT"}[random.IntN(6)])
		w.WriteHeader(http.StatusServiceUnavailable)
	case 3:
		download(1<<20, 1+random.IntN(2000))(w, r)
	case 4:
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(h.bomb)
	case 5:
		h.malformed(w, random)
	case 6:
		<-r.Context().Done()
	default:
		h.page(w, r, random)
	}
}

// robots makes up the text of a robots.txt.
func (h *hostile) robots(random *rand.Rand) string {
	line := []string{
		"disallow: /*" + strings.Repeat("ab", 10) + "c\n", "disallow: " + strings.Repeat("*a", 8000) + "b\n", "disallow: /zzz\n", "allow: *\n",
		"user-agent: x\n", "disallow: /%\xff" + strings.Repeat("é", 100) + "$\n", "disallow:\r", "crawl-delay: 1e300\n", "crawl-delay: 59\n", "\x00\n",
	}[random.IntN(10)]
	text := "user-agent: *\n" + strings.Repeat(line, (1<<random.IntN(20))/len(line)+1)
	if random.IntN(2) == 0 {
		text += "user-agent: *\ndisallow: /*" + strconv.Itoa(random.IntN(10)) + "\n"
	}
	return text
}

// elsewhere makes up where a redirect leads: mostly to the honest site, at its cost.
func (h *hostile) elsewhere(random *rand.Rand) string {
	n := random.IntN(1000)
	return []string{
		fmt.Sprintf("http://honest.example/robots.txt?%d", n), fmt.Sprintf("http://dead%d.honest.example/", n), "http://honest.example/broken",
		fmt.Sprintf("http://honest.example:%d/", 1+n), fmt.Sprintf("http://s%d.evil.example/%d", n%20, n), "/" + strings.Repeat("é", n), "http://honest.example/slow",
		"ftp://x/", "http://%zz/", "",
	}[random.IntN(10)]
}

func (h *hostile) malformed(w http.ResponseWriter, random *rand.Rand) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	io.WriteString(conn, []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", strings.Repeat("HTTP/1.1 103 Early\r\n\r\n", 1000),
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20), "HTTP/1.1 302 Found\r\nLocation: /" + strings.Repeat("y", 100<<10) + "\r\n\r\n", "\x00", "",
		"HTTP/1.1 200 OK\r\nContent-Type: \xff" + strings.Repeat("z", 100<<10) + "\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
	}[random.IntN(8)])
}

// page writes a page of many links.
func (h *hostile) page(w http.ResponseWriter, r *http.Request, random *rand.Rand) {
	w.Header().Set("Content-Type", "text/html")
	base := []string{"", "<base href=aaaa/>", "<base href='/" + strings.Repeat("ab", 4000) + "'>", "<base href='//x'>", "<base href='/" + strings.Repeat("é", 9000) + "'>"}[random.IntN(5)]
	var page strings.Builder
	for range 1 << random.IntN(12) {
		page.WriteString(base)
	}
	long := strings.Repeat(strings.Repeat("a", 60)+".", 4)
	for i := range 1 << random.IntN(14) {
		switch random.IntN(6) {
		case 0:
			fmt.Fprintf(&page, "<a href='http://s%d.evil.example:%d/%d'>", random.IntN(1000), 1+random.IntN(65535), i)
		case 1:
			fmt.Fprintf(&page, "<a href='http://%sevil.example:65535/%d'>", long[random.IntN(100):], i)
		case 2:
			fmt.Fprintf(&page, "<a href='/?%s\xff \"%d'>", strings.Repeat("ü", random.IntN(100)), i)
		default:
			fmt.Fprintf(&page, "<a href='%d'>", i)
		}
	}
	io.WriteString(w, page.String())
}

// honest serves pages at once, and an address that fails, and one that is slow, to which others may redirect.
func honest(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/broken":
		w.WriteHeader(http.StatusInternalServerError)
	case "/slow":
		download(100<<10, 10)(w, r)
	default:
		hello(w, r)
	}
}

// besideHostile crawls a hostile site and an honest one, and checks the pace and the results of the honest one.
func besideHostile(t *testing.T, seed uint64) {
	evil := newHostile(seed)
	n := newNetwork(t, map[string]http.Handler{"evil.example": evil, "honest.example": free(honest)})
	n.resolve = func(host string) string {
		if strings.HasSuffix(host, ".evil.example") {
			return "evil.example"
		}
		return host
	}
	n.dialing = func(host string) time.Duration {
		if strings.HasSuffix(host, ".honest.example") {
			return 10 * time.Second
		}
		return 0
	}
	var urls []string
	for i := range 10 {
		urls = append(urls, fmt.Sprintf("http://evil.example/%d", i), fmt.Sprintf("http://s%d.evil.example/", i))
	}
	own := pagesOf("honest.example", 60)
	began := time.Now()
	var last time.Time
	fetched := 0
	err := fetch.Run(t.Context(), fetch.URLs(append(urls, own...)...), fetch.Options{
		Transport: n.transport, Total: weir.PerSecond(1000), Depth: 3, Count: 500, MaxBytes: 1 << 20, Timeout: 5 * time.Second, Page: followAll,
		Done: func(r fetch.Result) {
			if strings.HasPrefix(r.URL, "http://honest.example/") {
				fetched++
				if last = r.Started; r.Outcome != fetch.Fetched {
					t.Errorf("%s: %s (%s)", r.URL, r.Outcome, r.Reason)
				}
			}
		},
	})
	time.Sleep(time.Minute) // connections that are not used any more come about
	if err != nil || fetched != len(own) {
		t.Errorf("%d of %d honest pages, %v", fetched, len(own), err)
	}
	if took := last.Sub(began); took > 60500*time.Millisecond { // robots.txt goes first; the total spaces requests too
		t.Errorf("the honest site took %v, want a page a second: %v", took, n.of("honest.example"))
	}
}

// Neither the rules, links, redirects and answers of a site, nor how its servers behave, change the pace of another.
func TestAHostileSiteSlowsOnlyItsOwnPages(t *testing.T) {
	for seed := range randtest.Seeds(t, 4, 2) {
		began := time.Now()
		synctest.Test(t, func(t *testing.T) { besideHostile(t, seed) })
		took := time.Since(began)
		t.Logf("seed %d takes %v", seed, took.Round(time.Millisecond))
		if took > time.Minute {
			t.Errorf("the work for 500 links took %v", took)
		}
	}
}
