package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// pattern reads lines in the form of nginx's log_format: texts with variables between them, whose values end where the text
// behind them begins. A value in quotes may hold quotes behind backslashes, a value behind a comma goes on, and a line may
// have more spaces than the pattern.
type pattern struct {
	head   string // the text before the first variable
	places []place
	open   bool // text behind the last value may follow
}

// place is a variable and the text behind it.
type place struct {
	name  string
	end   string                  // empty at the end of the pattern
	check func(value []byte) bool // or nil: any value fits
	seek  bool                    // the next variable holds the time: the value ends where a time follows
	all   bool                    // the value goes on to the end of the line
	port  bool                    // a colon and a port follow, and the value may have colons
}

// parsePattern reads a pattern: $name or ${name} is a variable. If it is open, the last value ends at a space.
func parsePattern(text string, open bool) (*pattern, error) {
	p := pattern{open: open}
	last := &p.head
	for rest := text; rest != ""; {
		literal, behind, found := strings.Cut(rest, "$")
		*last += literal
		if !found {
			break
		}
		name := behind[:nameLength(behind)]
		rest = behind[len(name):]
		if inner, ok := strings.CutPrefix(behind, "{"); ok {
			name, rest, ok = strings.Cut(inner, "}")
			if !ok || nameLength(name) != len(name) {
				return nil, errors.New("${ without the } of a variable")
			}
		}
		switch {
		case name == "":
			return nil, errors.New("$ without the name of a variable")
		case len(p.places) > 0 && *last == "":
			return nil, fmt.Errorf("$%s follows $%s without a text between them", name, p.places[len(p.places)-1].name)
		case slices.Contains(p.names(), name):
			return nil, fmt.Errorf("$%s occurs twice", name)
		}
		p.places = append(p.places, place{name: name, check: checks[name]})
		last = &p.places[len(p.places)-1].end
	}
	for i := range p.places {
		p.places[i].seek = i+1 < len(p.places) && slices.Contains(timeNames, p.places[i+1].name)
		p.places[i].all = !open && p.places[i].end == ""
		p.places[i].port = i+1 < len(p.places) && p.places[i].end == ":" && strings.HasSuffix(p.places[i+1].name, "port")
	}
	return &p, nil
}

func nameLength(text string) int {
	end := strings.IndexFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
	})
	if end < 0 {
		return len(text)
	}
	return end
}

func (p *pattern) names() (names []string) {
	for i := range p.places {
		names = append(names, p.places[i].name)
	}
	return names
}

// split reads the values of the part of a line that fits: a value counts if its end is there.
func (p *pattern) split(line []byte, values [][]byte) fit {
	clear(values)
	rest, ok := bytes.CutPrefix(line, []byte(p.head))
	if !ok {
		return fit{}
	}
	for i := range p.places {
		v := &p.places[i]
		end := v.endIn(rest)
		switch {
		case v.seek:
			end = p.seek(rest, i)
		case v.port:
			end = bytes.LastIndexByte(rest[:max(0, p.places[i+1].endIn(rest))], ':')
		}
		if end < 0 || v.check != nil && !v.check(rest[:end]) {
			return fit{found: i}
		}
		values[i] = rest[:end]
		rest = rest[min(end+len(v.end), len(rest)):]
		if n := len(v.end); n > 0 && v.end[n-1] == ' ' {
			rest = bytes.TrimLeft(rest, " ")
		}
	}
	exact := len(rest) == 0
	return fit{len(values), exact || p.open, exact}
}

// endIn returns the length of the value at the beginning of a text, or -1.
func (v *place) endIn(text []byte) int {
	switch {
	case v.end == "":
		if end := bytes.IndexByte(text, ' '); end >= 0 && !v.all {
			return end
		}
		return len(text)
	case v.end[0] != '"':
		return indexBehindNoComma(text, v.end)
	}
	for at := 0; ; at++ {
		i := bytes.IndexByte(text[at:], '"')
		if i < 0 {
			return -1
		}
		if at += i; !escaped(text[:at]) && strings.HasPrefix(string(text[at:min(at+len(v.end), len(text))]), v.end) {
			return at
		}
	}
}

// indexBehindNoComma returns the place of end. A space behind a comma separates the members of a list.
func indexBehindNoComma(text []byte, end string) int {
	for at := 0; ; at++ {
		i := bytes.IndexByte(text[at:], end[0])
		if i < 0 || at+i+len(end) > len(text) {
			return -1
		}
		at += i
		if string(text[at:at+len(end)]) == end && (end[0] != ' ' || at == 0 || text[at-1] != ',') {
			return at
		}
	}
}

// seek returns the end of the value before the time: the first place that a time follows, with the text behind it. Users
// choose their names, and these may look like the text before a time.
func (p *pattern) seek(text []byte, i int) int {
	v, next := &p.places[i], &p.places[i+1]
	for from, tries := 0, 0; tries < maxSeek; from, tries = from+1, tries+1 {
		end := v.endIn(text[from:])
		if end < 0 {
			return -1
		}
		from += end
		after := text[from+len(v.end):]
		after = after[:min(len(after), maxTimeText+len(next.end))]
		if size := next.endIn(after); size >= 0 {
			if _, why := parseTime(after[:size]); why != whyBadTime {
				return from
			}
		}
	}
	return -1
}

// maxSeek bounds the places that are tried, and with them the work that a line can make.
const maxSeek = 16

// escaped reports whether b ends in an odd number of backslashes.
func escaped(b []byte) bool {
	odd := false
	for i := len(b) - 1; i >= 0 && b[i] == '\\'; i-- {
		odd = !odd
	}
	return odd
}
