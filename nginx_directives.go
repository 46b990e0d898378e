package weir

import "strings"

// ParseNginx reads nginx's own directives, as they stand in its configuration:
//
//	limit_req_zone $binary_remote_addr zone=one:10m rate=5r/s;
//	limit_req zone=one burst=10 delay=3;
//
// There must be one limit_req_zone, which has the rate. A limit_req is optional,
// and there may be one. Comments, the key, the zone and the parameters that do
// not change a decision are passed over. The error is a *SyntaxError that points
// at the word, or a *LimitError where a value is out of bounds.
func ParseNginx(directives string) (NginxLimitReq, error) {
	n := nginxReader{scanner: scanner{text: directives}}
	for n.err == nil && n.skipComments() != "" {
		n.directive()
	}
	switch {
	case n.err != nil:
		return NginxLimitReq{}, n.err
	case !n.zone:
		return NginxLimitReq{}, &SyntaxError{Text: directives, Offset: len(directives), Want: "limit_req_zone with rate="}
	}
	return n.limit, n.limit.Validate()
}

// nginxReader reads directives up to the first error.
type nginxReader struct {
	scanner
	limit     NginxLimitReq
	zone, use bool // whether there was one
	err       error
}

// skipComments is the next word that is not in a comment.
func (n *nginxReader) skipComments() string {
	for {
		word := n.peek()
		if !strings.HasPrefix(word, "#") {
			return word
		}
		line, _, _ := strings.Cut(n.text[n.at:], "\n")
		n.at += len(line)
	}
}

// directive reads a name and its parameters up to the semicolon.
func (n *nginxReader) directive() {
	name := n.peek()
	again := name == "limit_req_zone" && n.zone || name == "limit_req" && n.use
	if again || name != "limit_req_zone" && name != "limit_req" {
		n.err = n.unexpected("limit_req_zone once, or limit_req once")
		return
	}
	n.next()
	n.zone, n.use = n.zone || name == "limit_req_zone", n.use || name == "limit_req"
	rated, ended := false, false
	for !ended && n.err == nil {
		word := n.skipComments()
		if word == "" {
			n.err = n.unexpected("';'")
			return
		}
		parameter, _, found := strings.Cut(word, ";")
		ended = found
		rated = rated || strings.HasPrefix(parameter, "rate=")
		n.parameter(name, parameter)
		if n.at += len(parameter); found {
			n.at++
		}
	}
	if n.err == nil && name == "limit_req_zone" && !rated {
		n.at--
		n.err = n.unexpected("rate=, such as rate=5r/s")
	}
}

func (n *nginxReader) parameter(directive, text string) {
	name, value, _ := strings.Cut(text, "=")
	switch {
	case directive == "limit_req_zone" && name == "rate":
		n.limit.Rate = n.rateOf(value)
	case directive == "limit_req" && name == "burst":
		n.limit.Burst = n.countOf(value)
	case directive == "limit_req" && name == "delay":
		n.limit.Delay = n.countOf(value)
	case directive == "limit_req" && text == "nodelay":
		n.limit.NoDelay = true
	case text == "", name == "zone", directive == "limit_req_zone" && (strings.HasPrefix(text, "$") || text == "sync"):
	default:
		n.err = n.unexpected("a parameter of " + directive)
	}
}

func (n *nginxReader) rateOf(value string) Rate {
	if count, ok := strings.CutSuffix(value, "r/s"); ok {
		return PerSecond(n.countOf(count))
	}
	if count, ok := strings.CutSuffix(value, "r/m"); ok {
		return PerMinute(n.countOf(count))
	}
	n.err = n.unexpected("rate=, such as rate=5r/s or rate=30r/m")
	return Rate{}
}

func (n *nginxReader) countOf(digits string) int64 {
	count, err := parseCount(digits)
	if err != nil {
		n.err = n.unexpected("a whole number")
	}
	return count
}
