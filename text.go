package weir

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir/internal/duration"
	"github.com/weirflow/weir/internal/scan"
)

// ParseLimit reads the text form of one limit:
//
//	token bucket 10/s burst 20
//	leaky bucket 5/s queue 10 nodelay 3
//	fixed window 100/1m
//	first window 100/1m
//	sliding window 1000/h
//	sliding log 5/10s gap 1s count denied
//	rate gate 2/s
//	cycle 50/500ms origin 250ms
//	cycle 50/500ms from first use
//	quota 1000000/month from day 15 at 06:00 in Europe/Paris
//	concurrency 20 lease 30s
//	ban 1m up to 24h after 5/10m
//	unlimited
//	deny all
//	bursty 5/s over 1s
//	warm up 5/s over 4s cold 3
//
// A bare rate is a token bucket: 60/m is token bucket 60/m, which admits a burst of 60. The error is a *SyntaxError
// that points at the word, or a *LimitError where a value is out of bounds.
func ParseLimit(text string) (Limit, error) {
	limit, err := parseLimit(text)
	return limit, withMeant(err, text, reads(parseLimit))
}

func parseLimit(text string) (Limit, error) {
	s := scannerOf(text)
	limits, err := s.validLimits()
	if err != nil {
		return nil, err
	}
	if len(limits) != 1 {
		return nil, &SyntaxError{Text: text, Offset: s.firstAnd, Word: "and", Want: "one limit"}
	}
	return limits[0], nil
}

// ParseLimits reads one limit, or several joined by "and".
func ParseLimits(text string) ([]Limit, error) {
	limits, err := parseLimits(text)
	return limits, withMeant(err, text, reads(parseLimits))
}

func parseLimits(text string) ([]Limit, error) { return scannerOf(text).validLimits() }

func (s *scanner) validLimits() ([]Limit, error) {
	limits, err := s.limits()
	if err != nil {
		return nil, err
	}
	for _, l := range limits {
		if err := l.validate(); err != nil {
			return nil, err
		}
	}
	return limits, nil
}

// ParseRule reads name=limits: login=token bucket 5/m and fixed window 100/d. Errors of the limits name the rule.
func ParseRule(text string) (*Rule, error) {
	rule, err := parseRule(text)
	if syntax, ok := errors.AsType[*SyntaxError](err); ok {
		syntax.Meant = meantRule(text)
	}
	return rule, err
}

func parseRule(text string) (*Rule, error) {
	name, _, ok := strings.Cut(text, "=")
	if !ok {
		return nil, &SyntaxError{Text: text, Want: "'=' and a limit"}
	}
	s := scannerOf(text)
	s.At, s.ofRule = len(name)+1, true
	limits, err := s.limits()
	if err != nil {
		return nil, err
	}
	name = strings.TrimSpace(name)
	rule, err := NewRule(name, limits...)
	return rule, inRule(name, err)
}

// limits reads limits joined by "and", to the end of the text.
func (s *scanner) limits() (limits []Limit, err error) {
	for {
		l, err := s.limit()
		if err != nil {
			return nil, err
		}
		limits = append(limits, l)
		if s.Peek() == "" {
			return limits, nil
		}
		if s.firstAnd == 0 {
			s.firstAnd = s.At
		}
		if !s.Accept("and") {
			return nil, s.unexpected(s.Wants("the end"))
		}
	}
}

func (s *scanner) limit() (Limit, error) {
	s.Forget()
	first := s.Peek()
	if strings.Contains(first, "/") { // a bare rate
		return tokenBucketKind.read(s)
	}
	var seconds []string
	for _, k := range kinds {
		word, second, _ := strings.Cut(k.name, " ")
		if word != first {
			continue
		}
		if len(seconds) == 0 {
			s.Next()
		}
		if second == "" || second == s.Peek() {
			s.At += len(second)
			return k.read(s)
		}
		seconds = append(seconds, strconv.Quote(second))
	}
	if len(seconds) == 0 {
		return nil, s.unexpected(s.wantsLimit())
	}
	return nil, s.unexpected(strings.Join(seconds, " or "))
}

// wantsLimit lists the words that can begin a limit.
func (s *scanner) wantsLimit() string {
	var names []string
	for _, k := range kinds {
		if !s.ofRule || k.inRules() {
			names = append(names, k.name)
		}
	}
	return "a rate such as 10/s or a limit (" + strings.Join(names, ", ") + ")"
}

// reads reports whether parse accepts a text.
func reads[T any](parse func(string) (T, error)) func(string) bool {
	return func(text string) bool {
		_, err := parse(text)
		return err == nil
	}
}

// withMeant adds the text that was probably meant to a *SyntaxError. It needs a parser that does not call it again.
func withMeant(err error, text string, reads func(string) bool) error {
	if syntax, ok := errors.AsType[*SyntaxError](err); ok {
		syntax.Meant = scan.Meant(text, reads)
	}
	return err
}

// meantRule returns the rule that was probably meant, or "". In concurrency=20 the name of the rule is missing.
func meantRule(text string) string {
	name, limits, _ := strings.Cut(text, "=")
	for _, c := range []struct{ name, limits string }{{"name", text}, {name, limits}} {
		prefix := strings.TrimSpace(c.name) + "="
		guess := scan.Meant(c.limits, func(guess string) bool { return reads(parseRule)(prefix + guess) })
		if guess != "" {
			return prefix + guess
		}
	}
	return ""
}

// scanner reads the text of limits.
type scanner struct {
	scan.Scanner
	ofRule   bool // errors offer only limits that a rule can hold
	firstAnd int  // the place of the first "and"
}

func scannerOf(text string) *scanner { return &scanner{Scanner: scan.Scanner{Text: text}} }

func (s *scanner) unexpected(want string) error {
	return &SyntaxError{Text: s.Text, Offset: s.At, Word: s.Peek(), Want: want}
}

func (s *scanner) end() error {
	if s.Peek() != "" {
		return s.unexpected("the end")
	}
	return nil
}

// parseCount reads decimal digits without a sign, so that a limit has one spelling.
func parseCount(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err
}

func (s *scanner) count() (int64, error) {
	n, err := parseCount(s.Peek())
	if err != nil {
		return 0, s.unexpected("a whole number")
	}
	s.Next()
	return n, nil
}

func (s *scanner) duration() (time.Duration, error) {
	d, ok := duration.Parse(s.Peek())
	if !ok {
		return 0, s.unexpected("a duration such as 500ms, 10s or 30d")
	}
	s.Next()
	return d, nil
}
