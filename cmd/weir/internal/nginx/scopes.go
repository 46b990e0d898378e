package nginx

import (
	"slices"
	"strings"
)

// scope is a location, or a server or http block, with the settings in force in it.
type scope struct {
	*directive // nil of http
	settings   map[string][]*directive
	answers    bool // it answers requests before limits are asked
}

// inherited are the directives that hold in the blocks within, unless these have directives of the same name.
var inherited = []string{
	"internal", "limit_req", "limit_req_dry_run", "error_page", "index", "random_index", "auth_request", "mirror", "add_before_body", "add_after_body",
}

// within returns the scope of a block inside.
func (p scope) within(d *directive) scope {
	q := scope{directive: d, settings: map[string][]*directive{}}
	for _, name := range inherited {
		q.settings[name] = p.settings[name]
	}
	given := map[string][]*directive{}
	for _, inner := range d.block {
		given[inner.name()] = append(given[inner.name()], inner)
	}
	for _, name := range inherited {
		if given[name] != nil {
			q.settings[name] = given[name]
		}
	}
	q.settings["try_files"] = given["try_files"] // is not inherited
	q.answers = p.answers && p.name() == "server" || answers(d.block)
	return q
}

// answers reports whether a return of a block answers all requests.
func answers(block []*directive) bool {
	for _, d := range block {
		switch flag := d.last(); {
		case d.name() == "return":
			return true
		case d.name() == "break", d.name() == "rewrite" && (flag == "break" || flag == "last"), d.name() == "if":
			return false
		}
	}
	return false
}

// limits returns the limit_req in force for requests that come to the scope.
func (p scope) limits() []*directive {
	if p.answers || p.settings["internal"] != nil {
		return nil
	}
	return p.settings["limit_req"]
}

// dry reports whether the limits refuse nothing.
func (p scope) dry() bool {
	given := p.settings["limit_req_dry_run"]
	return given != nil && given[0].arg(0) == "on"
}

// like reports whether two scopes limit alike, also requests that are redirected to them.
func (p scope) like(q scope) bool {
	sameNames := slices.Equal(p.settings["limit_req"], q.settings["limit_req"])
	return sameNames && slices.Equal(p.limits(), q.limits()) && (p.dry() == q.dry() || len(p.limits()) == 0)
}

// isRedirect reports whether a rewrite answers with a redirect.
func isRedirect(d *directive) bool {
	outside := slices.ContainsFunc([]string{"http://", "https://", "$scheme"}, func(scheme string) bool { return strings.HasPrefix(d.arg(1), scheme) })
	return outside || d.arg(2) == "permanent" || d.arg(2) == "redirect"
}

// leaves returns a directive of the scope that sends requests to other locations before limits are asked, or nil.
func (p scope) leaves() *directive {
	for _, d := range rewrites(p.block) {
		if p.name() != "location" || d.arg(2) != "break" {
			return d
		}
	}
	return nil
}

// rewrites returns the directives of a block and its if blocks that change the path of requests.
func rewrites(block []*directive) (found []*directive) {
	for _, d := range block {
		switch {
		case d.name() == "rewrite" && !isRedirect(d), strings.HasPrefix(d.name(), "rewrite_by_lua"):
			found = append(found, d)
		case d.name() == "if":
			found = append(found, rewrites(d.block)...)
		}
	}
	return found
}

// returns reports whether a block, or an if block in it, answers some requests before limits are asked.
func returns(block []*directive) bool {
	return slices.ContainsFunc(block, func(d *directive) bool { return d.name() == "return" || d.name() == "if" && returns(d.block) })
}
