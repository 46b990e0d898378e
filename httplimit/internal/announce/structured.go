package announce

import "strings"

// member is an item of a structured field (RFC 9651) with its parameters, or a member of a dictionary.
type member struct {
	key    string // key in a dictionary; empty in a list
	value  bare
	params []param
}

type param struct {
	key   string
	value bare
}

// bare is a bare item. Text holds the characters of a string, a token or a number.
type bare struct {
	kind kind
	text string
}

type kind byte

const (
	isTrue   kind = iota // a parameter without a value
	isNumber             // an integer or a decimal
	isString
	isToken
	isOther // bytes, a boolean, a date
)

// param returns the value of a parameter. The last of several counts.
func (m *member) param(key string) (value bare, ok bool) {
	for _, p := range m.params {
		if p.key == key {
			value, ok = p.value, true
		}
	}
	return value, ok
}

// parseList reads a list or a dictionary of items. A malformed field is ignored as a whole.
func parseList(text string) ([]member, bool) {
	s := scanner{rest: strings.Trim(text, " \t")}
	var members []member
	for s.rest != "" {
		m, ok := s.member()
		if !ok {
			return nil, false
		}
		members = append(members, m)
		s.skip(" \t")
		if s.rest == "" {
			return members, true
		}
		if !s.accept(',') {
			return nil, false
		}
		if s.skip(" \t"); s.rest == "" {
			return nil, false
		}
	}
	return members, len(members) > 0
}

// scanner reads a structured field from its front.
type scanner struct{ rest string }

func (s *scanner) member() (m member, ok bool) {
	before := s.rest
	if key := s.key(); key != "" && s.accept('=') {
		m.key = key
	} else {
		s.rest = before
	}
	if m.value, ok = s.bare(); !ok {
		return m, false
	}
	for s.accept(';') {
		s.skip(" ")
		p := param{key: s.key()}
		if p.key == "" {
			return m, false
		}
		if s.accept('=') {
			if p.value, ok = s.bare(); !ok {
				return m, false
			}
		}
		m.params = append(m.params, p)
	}
	return m, true
}

func (s *scanner) bare() (bare, bool) {
	if s.rest == "" {
		return bare{}, false
	}
	switch c := s.rest[0]; {
	case c == '"':
		return s.quoted()
	case c == '-' || isDigit(c):
		return bare{isNumber, s.while(func(c byte) bool { return isDigit(c) || c == '.' || c == '-' })}, true
	case c == ':':
		return s.delimited()
	case c == '?' || c == '@':
		s.rest = s.rest[1:]
		return bare{isOther, s.while(func(c byte) bool { return isDigit(c) || c == '-' })}, true
	case isLetter(c) || c == '*':
		return bare{isToken, s.while(isTokenByte)}, true
	}
	return bare{}, false
}

// quoted reads a string. Only a quote and a backslash are escaped.
func (s *scanner) quoted() (bare, bool) {
	var b strings.Builder
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return bare{isString, b.String()}, true
		case c == '\\':
			if i++; i == len(s.rest) || s.rest[i] != '"' && s.rest[i] != '\\' {
				return bare{}, false
			}
			b.WriteByte(s.rest[i])
		case c < ' ' || c > '~':
			return bare{}, false
		default:
			b.WriteByte(c)
		}
	}
	return bare{}, false
}

// delimited reads bytes between colons.
func (s *scanner) delimited() (bare, bool) {
	text, rest, ok := strings.Cut(s.rest[1:], ":")
	s.rest = rest
	return bare{isOther, text}, ok
}

func (s *scanner) key() string {
	if s.rest == "" || !isLower(s.rest[0]) && s.rest[0] != '*' {
		return ""
	}
	return s.while(func(c byte) bool { return isLower(c) || isDigit(c) || strings.IndexByte("_-.*", c) >= 0 })
}

func (s *scanner) while(is func(byte) bool) string {
	i := 0
	for i < len(s.rest) && is(s.rest[i]) {
		i++
	}
	text := s.rest[:i]
	s.rest = s.rest[i:]
	return text
}

func (s *scanner) skip(bytes string) { s.rest = strings.TrimLeft(s.rest, bytes) }

func (s *scanner) accept(c byte) bool {
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLower(c byte) bool  { return c >= 'a' && c <= 'z' }
func isLetter(c byte) bool { return isLower(c|0x20) && c < 0x80 }

func isTokenByte(c byte) bool {
	return isLetter(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
}
