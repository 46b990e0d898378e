package scan

import (
	"strconv"
	"strings"
)

// Nginx is what nginx's directives limit_req_zone and limit_req say.
type Nginx struct {
	Count        int64 // requests in a second or minute
	PerMinute    bool
	Burst, Delay int64
	NoDelay      bool
}

// Nginx reads the rest of the text as directives. If it cannot, want says what should stand at the place where the
// scanner stops.
func (s *Scanner) Nginx() (_ Nginx, want string) {
	n := nginx{Scanner: s}
	for n.want == "" && n.skipComments() != "" {
		n.directive()
	}
	if n.want == "" && !n.zone {
		return Nginx{}, "limit_req_zone with rate="
	}
	return n.read, n.want
}

// nginx reads directives up to the first fault.
type nginx struct {
	*Scanner
	read      Nginx
	zone, use bool   // already read
	name      string // name of the zone in the first directive
	want      string
}

// skipComments returns the next word outside comments.
func (n *nginx) skipComments() string {
	for {
		word := n.Peek()
		if !strings.HasPrefix(word, "#") {
			return word
		}
		line, _, _ := strings.Cut(n.Text[n.At:], "\n")
		n.At += len(line)
	}
}

// directive reads a name and its parameters up to the semicolon.
func (n *nginx) directive() {
	name := n.Peek()
	again := name == "limit_req_zone" && n.zone || name == "limit_req" && n.use
	if again || name != "limit_req_zone" && name != "limit_req" {
		n.want = "limit_req_zone once, or limit_req once"
		return
	}
	n.Next()
	n.zone, n.use = n.zone || name == "limit_req_zone", n.use || name == "limit_req"
	rated, ended := false, false
	for !ended {
		word := n.skipComments()
		if word == "" {
			n.want = "';'"
			return
		}
		var parameter string
		parameter, _, ended = strings.Cut(word, ";")
		rated = rated || strings.HasPrefix(parameter, "rate=")
		if n.parameter(name, parameter); n.want != "" {
			return
		}
		n.At += len(parameter)
	}
	if name == "limit_req_zone" && !rated {
		n.want = "rate=, such as rate=5r/s"
		return
	}
	n.At++ // the semicolon
}

func (n *nginx) parameter(directive, text string) {
	name, value, _ := strings.Cut(text, "=")
	switch {
	case directive == "limit_req_zone" && name == "rate":
		n.rate(value)
	case directive == "limit_req" && name == "burst":
		n.read.Burst = n.count(value)
	case directive == "limit_req" && name == "delay":
		n.read.Delay = n.count(value)
	case directive == "limit_req" && text == "nodelay":
		n.read.NoDelay = true
	case name == "zone":
		n.sameZone(value)
	case text == "", directive == "limit_req_zone" && (strings.HasPrefix(text, "$") || text == "sync"):
	default:
		n.want = "a parameter of " + directive
	}
}

// sameZone refuses a limit_req of a zone that the limit_req_zone does not define.
func (n *nginx) sameZone(value string) {
	zone, _, _ := strings.Cut(value, ":") // its size
	if n.name != "" && zone != n.name {
		n.want = "zone=" + n.name
	}
	n.name = zone
}

func (n *nginx) rate(value string) {
	count, isSecond := strings.CutSuffix(value, "r/s")
	n.read.PerMinute = !isSecond && strings.HasSuffix(value, "r/m")
	if n.read.PerMinute {
		count = strings.TrimSuffix(value, "r/m")
	}
	if !isSecond && !n.read.PerMinute {
		n.want = "rate=, such as rate=5r/s or rate=30r/m"
		return
	}
	n.read.Count = n.count(count)
}

func (n *nginx) count(digits string) int64 {
	count, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		n.want = "a whole number"
	}
	return int64(count)
}
