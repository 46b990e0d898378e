package fetch

import (
	"iter"
	"strings"
)

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
