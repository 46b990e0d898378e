package fetch_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/fetch"
)

// tree serves pages that link to ten others each: /1 to /10 … /19.
func tree(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	for i := range 10 {
		fmt.Fprintf(w, "<p><a href=\"%s%d#part\">%d</a>", r.URL.Path, i, i)
	}
	fmt.Fprint(w, `<a href="https://elsewhere.example/">away</a> <a href="mailto:me">me</a> <a href="/">up</a>`)
}

// followAll follows all links of a page.
func followAll(_ context.Context, p *fetch.Page) error {
	for link, err := range p.Links() {
		if err != nil {
			return err
		}
		p.Follow(link)
	}
	return nil
}

func TestLinksAreFollowedBreadthFirstWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(tree), "b.example": free(tree), "elsewhere.example": free(hello)})
		results := map[string]fetch.Result{}
		err := fetch.Run(t.Context(), fetch.URLs("http://a.example/", "http://b.example/"), fetch.Options{Transport: n.transport, Depth: 2, Count: 50,
			Page: followAll, Done: func(r fetch.Result) { results[r.URL] = r }})
		if err != nil {
			t.Fatal(err)
		}
		if len(results) != 52 {
			t.Errorf("%d URLs, want 2 and 50 links", len(results))
		}
		for _, host := range []string{"a.example", "b.example"} {
			all := paths(n.of(host))[1:] // without robots.txt
			if !slices.IsSortedFunc(all, func(a, b string) int { return len(a) - len(b) }) {
				t.Errorf("%s: %q is not breadth first", host, all)
			}
			if len(all) < 20 || slices.ContainsFunc(all, func(path string) bool { return len(path) > 3 }) {
				t.Errorf("%s: %q, want about 26 to depth 2", host, all)
			}
		}
		if len(n.of("elsewhere.example")) != 0 {
			t.Error("a link to another site was followed")
		}
		if r := results["http://a.example/"]; len(r.Links) != 10 || r.Links[0] != "http://a.example/0" || results["http://a.example/3"].Depth != 1 {
			t.Errorf("the result has %d links (%q), want 10 in canonical form", len(r.Links), r.Links)
		}
	})
}

func TestAFollowedLinkDoesNotLeaveItsSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, map[string]http.Handler{"a.example": free(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/out" {
				http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
				return
			}
			fmt.Fprint(w, `<html><a href="/out">`)
		}), "elsewhere.example": free(hello)})
		var last fetch.Result
		err := fetch.Run(t.Context(), fetch.URLs("http://a.example/"), fetch.Options{Transport: n.transport, Depth: 5, Page: followAll,
			Done: func(r fetch.Result) { last = r }})
		if err != nil || last.Outcome != fetch.Skipped || !strings.Contains(last.Reason, "leads to another site, elsewhere.example") {
			t.Errorf("%v, %+v", err, last)
		}
	})
}

// A page whose body ends early is read again, and its links are followed once.
func TestLinksOfARepeatedPageAreFollowedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		n := newNetwork(t, map[string]http.Handler{"a.example": free(func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked == 1 {
				w.Header().Set("Content-Length", "100")
			}
			fmt.Fprint(w, `<html><a href="/x">`)
		})})
		var done []fetch.Result
		err := fetch.Run(t.Context(), fetch.URLs("http://a.example/"), fetch.Options{Transport: n.transport, Depth: 1, Page: followAll,
			Done: func(r fetch.Result) { done = append(done, r) }})
		if err != nil || len(done) != 2 {
			t.Fatalf("%v, %+v, want two results", err, done)
		}
		i := slices.IndexFunc(done, func(r fetch.Result) bool { return r.URL == "http://a.example/" })
		if r := done[i]; r.Outcome != fetch.Fetched || r.Tries != 2 || !slices.Equal(r.Links, []string{"http://a.example/x"}) {
			t.Errorf("got %+v, want it fetched in the second try, with its link", r)
		}
	})
}

// The links of one page are bounded, also if each attempt to read it shows others.
func TestLinksOfOnePageAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		n := newNetwork(t, map[string]http.Handler{"a.example": free(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				return
			}
			w.Header().Set("Content-Length", "5000000") // which never come
			fmt.Fprintf(w, "<!doctype html><base href='/%s'>", strings.Repeat("a", 8000))
			for i := range 300 {
				fmt.Fprintf(w, "<a href='?%d-%d'>", asked, i)
			}
			asked++
		})})
		results := crawl(t, n, fetch.Options{Depth: 1, Page: followAll, PerHost: weir.PerSecond(100), Total: weir.PerSecond(100)}, "http://a.example/")
		bytes := 0
		for _, link := range results["http://a.example/"].Links {
			bytes += len(link)
		}
		if asked != 4 || bytes > 8<<20 || bytes < 8<<20-8192 {
			t.Errorf("%d attempts have links of %d bytes, want 4 with nearly 8 MiB", asked, bytes)
		}
	})
}
