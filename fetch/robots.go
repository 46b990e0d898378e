package fetch

import (
	"fmt"
	"iter"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// robots is what a robots.txt says to one program. The zero value allows everything.
type robots struct {
	rules []rule
	wild  int           // the number of rules with an asterisk
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

// crawlDelay reads a number of seconds, such as 2, 1.5 or 1,5, or a time with its unit, such as 1.5s. Other text is 0.
func crawlDelay(value string) time.Duration {
	value = strings.Replace(value, ",", ".", 1)
	if d, err := time.ParseDuration(strings.ToLower(strings.ReplaceAll(value, " ", ""))); err == nil {
		return max(d, 0)
	}
	seconds, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || !(seconds > 0):
		return 0
	case seconds > math.MaxInt64/float64(time.Second)/2:
		return math.MaxInt64 / 2
	}
	return time.Duration(math.Ceil(seconds * float64(time.Second)))
}

// The parser is our own because those that exist are not right: temoto/robotstxt fails several of Google's published
// cases, and jimsmart/grobotstxt passes them but loses rules with escapes such as %e3 (it clears a bit of the digit).

// maxRobotsLine is the part of a line that Google reads.
const maxRobotsLine = 2083*8 - 1

// robotsLines returns the lines of a robots.txt, which end with LF, CR or both. It skips a byte order mark, or a part
// of one.
func robotsLines(text string) iter.Seq[string] {
	for _, b := range []string{"\xEF", "\xBB", "\xBF"} {
		rest, found := strings.CutPrefix(text, b)
		if !found {
			break
		}
		text = rest
	}
	return func(yield func(string) bool) {
		for text != "" {
			line, rest := text, ""
			if end := strings.IndexAny(text, "\r\n"); end >= 0 {
				line, rest = text[:end], text[end+1:]
			}
			if text = rest; !yield(line[:min(len(line), maxRobotsLine)]) {
				return
			}
		}
	}
}

// robotsLine divides a line into a name and a value. A colon divides them, or white space if it is the only one.
func robotsLine(line string) (name, value string, ok bool) {
	line, _, _ = strings.Cut(line, "#")
	if name, value, ok = strings.Cut(line, ":"); ok {
		name = strings.TrimSpace(name)
		return strings.ToLower(name), strings.TrimSpace(value), name != ""
	}
	if words := strings.Fields(line); len(words) == 2 {
		return strings.ToLower(words[0]), words[1], true
	}
	return "", "", false
}

// The names of lines that begin a group, and of lines that forbid, with the frequent mistakes that Google accepts.
var (
	agentNames    = []string{"user-agent", "useragent", "user agent"}
	disallowNames = []string{"disallow", "dissallow", "dissalow", "disalow", "diaslow", "diasllow", "disallaw"}
)

// robotsReader collects the groups of one agent, and those of all. Groups of one agent are one.
type robotsReader struct {
	agent       string
	own, common robots
	named       bool // a group names the agent

	inOwn, inCommon bool // the lines are of such a group
	inRules         bool // the next user-agent begins a new group
}

// line reads one line. Lines with other names, such as sitemaps, end no group.
func (r *robotsReader) line(name, value string) {
	switch {
	case beginsWithAny(name, agentNames):
		r.userAgent(value)
	case beginsWithAny(name, disallowNames):
		r.add(rule{escape(value), false})
	case strings.HasPrefix(name, "allow"):
		r.allow(escape(value))
	case name == "crawl-delay": // which RFC 9309 does not know
		r.delay(value)
	}
}

func beginsWithAny(text string, beginnings []string) bool {
	for _, b := range beginnings {
		if strings.HasPrefix(text, b) {
			return true
		}
	}
	return false
}

func (r *robotsReader) userAgent(agent string) {
	if r.inRules {
		r.inRules, r.inOwn, r.inCommon = false, false, false
	}
	if rest, all := strings.CutPrefix(agent, "*"); all && (rest == "" || strings.TrimSpace(rest[:1]) == "") {
		r.inCommon = true
	} else if r.agent != "" && strings.EqualFold(product(agent), r.agent) {
		r.inOwn, r.named = true, true
	}
}

// allow adds a rule that allows. Google takes index.htm and index.html for their folder.
func (r *robotsReader) allow(pattern string) {
	r.add(rule{pattern, true})
	if slash := strings.LastIndexByte(pattern, '/'); slash >= 0 && strings.HasPrefix(pattern[slash:], "/index.htm") {
		r.add(rule{pattern[:slash+1] + "$", true})
	}
}

// add adds a rule to the group. An empty pattern is no rule, but the next user-agent begins a new group after it.
func (r *robotsReader) add(rule rule) {
	if !r.inOwn && !r.inCommon {
		return
	}
	r.inRules = true
	if rule.pattern == "" {
		return
	}
	if r.inOwn {
		r.own.add(rule)
	}
	if r.inCommon {
		r.common.add(rule)
	}
}

func (r *robotsReader) delay(value string) {
	delay := crawlDelay(value)
	if r.inOwn {
		r.own.delay = max(r.own.delay, delay)
	}
	if r.inCommon {
		r.common.delay = max(r.common.delay, delay)
	}
}

// escape returns a pattern with escapes in capitals, and with one for each byte beyond ASCII.
func escape(pattern string) string {
	const digits = "0123456789ABCDEF"
	var escaped strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c >= 0x80:
			escaped.Write([]byte{'%', digits[c>>4], digits[c&15]})
		case c == '%' && i+2 < len(pattern) && isHex(pattern[i+1]) && isHex(pattern[i+2]):
			escaped.Write([]byte{c, capital(pattern[i+1]), capital(pattern[i+2])})
			i += 2
		default:
			escaped.WriteByte(c)
		}
	}
	return escaped.String()
}

func isHex(c byte) bool {
	c = capital(c)
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'F'
}

// verdict says why a URL is not sent. It is empty if nothing forbids it.
type verdict struct {
	outcome Outcome
	reason  string
	err     error
}
