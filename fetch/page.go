package fetch

import (
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Page is an answer with a status of 2xx. It may be used until Options.Page returns, by one goroutine.
type Page struct {
	URL     *url.URL // after redirects
	Asked   string   // as listed or followed
	Depth   int
	Header  http.Header
	Started time.Time // when the request was written
	// Body delivers at most Options.MaxBytes bytes, at the speed of Options.Bandwidth.
	Body io.Reader

	crawl *crawl
	task  *task
}

// PageError is an error of Options.Page that concerns one page. The URL fails with its text, and the run goes on.
type PageError struct{ Err error }

func (e *PageError) Error() string { return e.Err.Error() }
func (e *PageError) Unwrap() error { return e.Err }

// isOfPage reports whether an error concerns one page.
func isOfPage(err error) bool {
	_, is := errors.AsType[*PageError](err)
	return is
}

// maxLinks bounds the links of one page, by their bytes together.
const maxLinks = 8 << 20

// Follow adds a link of the page to the crawl, if it stays on the registrable domain of the page and within
// Options.Depth and Options.Count, and was not added before. The links of one page may have 8 MiB. A link may be
// relative.
func (p *Page) Follow(link string) bool {
	target, err := p.URL.Parse(link)
	if err != nil || p.Depth >= p.crawl.Options.Depth || tidy(target) != nil || siteOf(target) != siteOf(p.URL) {
		return false
	}
	asked := target.String()
	if p.task.linked+len(asked) > maxLinks || p.crawl.Known != nil && p.crawl.Known(Link{URL: asked, Depth: p.Depth + 1}) {
		return false
	}
	if !p.crawl.follow(&task{url: target, asked: asked, home: siteOf(target), depth: p.Depth + 1}) {
		return false
	}
	p.task.links = append(p.task.links, asked)
	p.task.linked += len(asked)
	return true
}

// Links reads Body as HTML and returns the targets of its links, resolved. It leaves out those above 8 KiB, and ends
// after 8 MiB of targets. A page of another type has none; then Links reads nothing. The error is that of reading Body.
func (p *Page) Links() iter.Seq2[string, error] {
	if !isHTML(p.Header.Get("Content-Type")) {
		return func(func(string, error) bool) {}
	}
	return links(p.URL, p.Body)
}

// maxToken bounds one tag or text of a page; the rest of the page is not looked at after a longer one.
const maxToken = 1 << 20

// links returns the targets of the links of an HTML text.
func links(base *url.URL, text io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		hasBase, size := false, 0
		for tag, target := range targets(text, func(err error) { yield("", err) }) {
			isBase := tag == atom.Base
			if isBase && hasBase {
				continue // HTML knows one base
			}
			hasBase = hasBase || isBase
			u, err := base.Parse(target)
			if err != nil {
				continue
			}
			link := u.String()
			if size += len(link); size > maxLinks {
				return
			}
			switch {
			case len(link) > maxURL:
			case isBase:
				base = u
			case !yield(link, nil):
				return
			}
		}
	}
}

// targets returns the tags that lead to another page, or set the base of the others, with their targets.
func targets(text io.Reader, failed func(error)) iter.Seq2[atom.Atom, string] {
	return func(yield func(atom.Atom, string) bool) {
		tokens := html.NewTokenizer(text)
		tokens.SetMaxBuf(maxToken)
		for {
			switch tokens.Next() {
			case html.ErrorToken:
				if err := tokens.Err(); err != io.EOF && err != html.ErrBufferExceeded {
					failed(err)
				}
				return
			case html.StartTagToken, html.SelfClosingTagToken:
				name, hasAttributes := tokens.TagName()
				if !hasAttributes {
					continue
				}
				tag := atom.Lookup(name)
				if target := targetOf(tokens, tag); target != "" && !yield(tag, target) {
					return
				}
			}
		}
	}
}

// targetOf returns the target of a tag that leads to another page, or sets the base of the others.
func targetOf(tokens *html.Tokenizer, tag atom.Atom) (target string) {
	wanted := atom.Href
	switch tag {
	case atom.A, atom.Area, atom.Base:
	case atom.Frame, atom.Iframe:
		wanted = atom.Src
	default:
		return ""
	}
	for more := true; more; {
		var key, value []byte
		if key, value, more = tokens.TagAttr(); atom.Lookup(key) == wanted && target == "" {
			target = string(value)
		}
	}
	return trimSpace(target)
}
