package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
)

// web is three hosts in memory. Their front pages link to two pages each, and one has a page that robots forbids.
type web struct{}

func (web) RoundTrip(r *http.Request) (*http.Response, error) {
	body := "<p>a page"
	switch {
	case r.URL.Path == "/robots.txt" && r.URL.Host == "b.example":
		body = "user-agent: *\ndisallow: /2\n"
	case r.URL.Path == "/robots.txt":
		body = ""
	case r.URL.Path == "/":
		body = `<a href="/1">1</a> <a href="/2">2</a> <a href="https://elsewhere.example/">away</a>`
	}
	return &http.Response{StatusCode: 200, Request: r, Header: http.Header{"Content-Type": {"text/html"}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body))}, nil
}

// The table shows a second between two requests of one host, and half a second between any two, robots.txt included.
func TestTheTableShowsPoliteness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := crawl(t.Context(), &out, web{}, "http://a.example/", "http://b.example/", "http://c.example/"); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile("testdata/table.txt")
		if err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) {
			t.Errorf("got the table\n%s\nwant\n%s", out.String(), want)
		}
	})
}
