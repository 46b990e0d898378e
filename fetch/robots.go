package fetch

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// robots is what a robots.txt says to one program. The zero value allows everything.
type robots struct {
	rules []rule
	wild  int           // of the rules, those with an asterisk
	size  int           // about the bytes that the rules take
	delay time.Duration // Crawl-delay; 0 if none
}

// rule allows or disallows paths. '*' in a pattern is any text, '$' at its end is the end of the path.
type rule struct {
	pattern string
	allow   bool
}

// parseRobots reads the groups for the agent, or those for "*" if there are none (RFC 9309). No text is an error.
func parseRobots(text, agent string) *robots {
	r := &robotsReader{agent: product(agent)}
	for line := range robotsLines(text) {
		if name, value, ok := robotsLine(line); ok {
			r.line(name, value)
		}
	}
	if r.named {
		return new(r.own)
	}
	return new(r.common) // and not a part of the reader, which would live as long
}

// ruleSize is about what a rule takes beside its pattern, with room for the slice to grow.
const ruleSize = 48

// add adds a rule.
func (r *robots) add(rule rule) {
	r.rules = append(r.rules, rule)
	r.size += ruleSize + len(rule.pattern)
	if strings.Contains(rule.pattern, "*") {
		r.wild++
	}
}

// maxSteps bounds the bytes that patterns with an asterisk are compared with, which takes some milliseconds.
const maxSteps = 8 << 20

// verdict says whether the rules forbid a URL of an origin.
func (r *robots) verdict(origin string, u *url.URL) verdict {
	path := robotsPath(u)
	switch {
	case r.wild*len(path) > maxSteps:
		return verdict{outcome: Skipped, reason: fmt.Sprintf("robots.txt of %s has %d patterns with an asterisk, too many for a path of %d bytes: their product is above %d",
			origin, r.wild, len(path), maxSteps)}
	case !r.allows(path):
		return verdict{outcome: Skipped, reason: "robots.txt of " + origin + " disallows it"}
	}
	return verdict{}
}

// allows reports whether the rules allow a path with its query: the longest pattern wins, and of two equal ones the
// one that allows.
func (r *robots) allows(path string) bool {
	longest, allow := 0, true
	for _, rule := range r.rules {
		n := len(rule.pattern)
		if n > longest || n == longest && rule.allow && !allow {
			if matches(path, rule.pattern) {
				longest, allow = n, rule.allow
			}
		}
	}
	return allow
}

// matches reports whether a pattern matches the beginning of a path. Each text between two asterisks is looked for
// once, so a hostile pattern takes no longer than another of its length.
func matches(path, pattern string) bool {
	pattern, atEnd := strings.CutSuffix(pattern, "$")
	part, pattern, more := strings.Cut(pattern, "*")
	rest, ok := strings.CutPrefix(path, part)
	for ok && more {
		part, pattern, more = strings.Cut(pattern, "*")
		if atEnd && !more {
			return strings.HasSuffix(rest, part)
		}
		_, rest, ok = strings.Cut(rest, part)
	}
	return ok && (!atEnd || rest == "")
}

// robotsPath returns what patterns are matched with. They have escapes in capitals.
func robotsPath(u *url.URL) string {
	path := []byte(u.RequestURI())
	for i := 0; i+2 < len(path); i++ {
		if path[i] == '%' {
			path[i+1], path[i+2] = capital(path[i+1]), capital(path[i+2])
		}
	}
	return string(path)
}

func capital(c byte) byte {
	if 'a' <= c && c <= 'f' {
		return c - 'a' + 'A'
	}
	return c
}

// product returns the name of a program in its User-Agent: "weirfetch" of "weirfetch/1.0 (+https://…)".
func product(agent string) string {
	end := strings.IndexFunc(agent, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_')
	})
	if end < 0 {
		return agent
	}
	return agent[:end]
}

// crawlDelay returns a number of seconds, which may have a fraction. Text that is no such number is 0.
func crawlDelay(value string) time.Duration {
	seconds, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || !(seconds > 0):
		return 0
	case seconds > math.MaxInt64/float64(time.Second)/2:
		return math.MaxInt64 / 2
	}
	return time.Duration(math.Ceil(seconds * float64(time.Second)))
}
