package nginx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// unknown is the target of a redirect to any scope.
const unknown = -1

// moved says why requests that come to a scope may be limited in another scope of the server, or returns "". nginx asks the
// limits of the first scope that has any for the request; an internal redirect brings a request that no limit has counted to
// the limits of the next scope. Rules know only the path that the client sent.
//
// touches reports whether a scope has the limits in question. passes reports whether its limits may not count a request.
func (ls *locations) moved(touches, passes func(p scope) bool) string {
	for _, p := range ls.scopes {
		if found := p.leaves(); found != nil {
			if slices.ContainsFunc(ls.scopes, func(q scope) bool { return !q.like(p) && (touches(p) || touches(q)) }) {
				return fmt.Sprintf("%s (line %d) sends requests to other locations, with other limits", found, found.line)
			}
		}
		if !passes(p) {
			continue
		}
		for _, r := range ls.redirects(p) {
			if q := ls.reached(r.to, p, touches); q != nil {
				return fmt.Sprintf("%s (line %d) sends requests that no limit has counted to %s (line %d), and rules know only the path that the client sent",
					r.by, r.by.line, q, q.line)
			}
		}
	}
	return ""
}

// reached returns a scope with the limits in question, other than those of p, that a redirect may reach, or nil.
func (ls *locations) reached(target int, p scope, touches func(p scope) bool) *scope {
	for i := range ls.scopes {
		q := &ls.scopes[i]
		if (target == i || target == unknown) && touches(*q) && !slices.Equal(q.settings["limit_req"], p.limits()) {
			return q
		}
	}
	return nil
}

// redirect is a directive that sends requests to another scope.
type redirect struct {
	by *directive
	to int
}

// redirects returns the redirects of a scope within nginx.
func (ls *locations) redirects(p scope) (all []redirect) {
	static := !p.answers
	for _, d := range p.block {
		if strings.Contains(d.name(), "_by_lua") {
			all = append(all, redirect{d, unknown})
		}
		static = static && !strings.HasSuffix(d.name(), "_pass") && d.name() != "empty_gif" && d.name() != "stub_status"
	}
	for _, d := range p.settings["try_files"] {
		if len(d.words) < 3 {
			continue // nginx refuses it
		}
		static = slices.ContainsFunc(d.words[1:len(d.words)-1], func(file string) bool { return strings.HasSuffix(file, "/") })
		if last := d.last(); !strings.HasPrefix(last, "=") {
			all = append(all, redirect{d, ls.target(last)})
		}
	}
	for _, name := range []string{"error_page", "auth_request", "mirror", "add_before_body", "add_after_body"} {
		for _, d := range p.settings[name] {
			if last := d.last(); last != "off" && !strings.Contains(last, "://") {
				all = append(all, redirect{d, ls.target(last)})
			}
		}
	}
	if static {
		all = append(all, ls.indexes(p)...)
	}
	return all
}

// indexes returns the redirects to index files of folders.
func (ls *locations) indexes(p scope) (all []redirect) {
	for _, d := range p.settings["random_index"] {
		all = append(all, redirect{d, unknown})
	}
	given := p.settings["index"]
	if given == nil {
		given = []*directive{{words: []string{"index", "index.html"}, line: p.line}}
	}
	for _, d := range given {
		for _, name := range d.words[1:] {
			for _, scope := range ls.indexed(p, name) {
				all = append(all, redirect{d, scope})
			}
		}
	}
	return all
}

// target returns the scope of an address within nginx.
func (ls *locations) target(address string) int {
	named, ok := ls.named[address]
	path, _, _ := strings.Cut(address, "?")
	switch {
	case ok:
		return named
	case strings.Contains(path, "$") || !strings.HasPrefix(path, "/"):
		return unknown
	}
	return ls.of(path)
}

// indexed returns the scopes that the index file of a folder may have although the folder, whose path ends in a slash, has
// the scope p.
func (ls *locations) indexed(p scope, name string) (scopes []int) {
	mark, text := kindOf(p.directive)
	read, err := expression(text, mark == "~*")
	switch isExpression := strings.HasPrefix(mark, "~"); {
	case isExpression && err == nil && !read.fitsFolders():
		return nil
	case strings.ContainsAny(name, "$/"), isExpression && strings.ContainsAny(text, `$\`), strings.HasPrefix(text, "@"):
		return []int{unknown}
	case mark == "=":
		return []int{ls.of(text + name)}
	}
	for _, l := range ls.paths {
		i, _ := strconv.Atoi(l.target)
		last := l.text[strings.LastIndexByte(l.text, '/')+1:]
		switch {
		case l.form == exactly && last == name, l.form == beginning && last != "" && strings.HasPrefix(name, last):
		case l.form == matching && l.mayEnd(name):
		default:
			continue
		}
		scopes = append(scopes, i)
	}
	return scopes
}
