package main

import (
	"io"
	"net/http"
	"strings"
)

// web is hosts in memory. Their front pages link to two pages each, and one has a page that robots.txt forbids.
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
