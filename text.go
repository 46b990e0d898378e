package weir

import (
	"strconv"
	"strings"
	"time"
)

// ParseLimit reads the text form of one limit:
//
//	token bucket 10/s burst 20
//	leaky bucket 5/s queue 10 nodelay 3
//	fixed window 100/1m
//	sliding window 1000/h
//	sliding log 5/10s gap 1s count denied
//	rate gate 2/s
//	cycle 50/500ms origin 250ms
//	concurrency 20 lease 30s
//	unlimited
//	deny all
//	bursty 5/s over 1s
//	warm up 5/s over 4s cold 3
//
// A bare rate is a token bucket: 60/m is token bucket 60/m, which admits a burst
// of 60. The error is a *SyntaxError that points at the word, or a *LimitError
// where a value is out of bounds.
func ParseLimit(text string) (Limit, error) {
	s := scanner{text: text}
	limits, err := parseLimits(&s)
	if err != nil {
		return nil, err
	}
	if len(limits) != 1 {
		return nil, &SyntaxError{Text: text, Offset: s.joined, Word: "and", Want: "one limit"}
	}
	return limits[0], nil
}

// ParseLimits reads one limit or several joined by "and".
func ParseLimits(text string) ([]Limit, error) { return parseLimits(&scanner{text: text}) }

func parseLimits(s *scanner) ([]Limit, error) {
	limits, err := s.limits()
	if err != nil {
		return nil, err
	}
	for _, l := range limits {
		if err := l.Validate(); err != nil {
			return nil, err
		}
	}
	return limits, nil
}

// ParseRule reads name=limits: login=token bucket 5/m and fixed window 100/d.
// The errors of its limits name the rule.
func ParseRule(text string) (*Rule, error) {
	name, _, ok := strings.Cut(text, "=")
	if !ok {
		return nil, &SyntaxError{Text: text, Want: "'=' and a limit"}
	}
	s := scanner{text: text, at: len(name) + 1, ofRule: true}
	limits, err := s.limits()
	if err != nil {
		return nil, err
	}
	name = strings.TrimSpace(name)
	rule, err := NewRule(name, limits...)
	return rule, inRule(name, err)
}

func limitsText(limits []Limit) string {
	texts := make([]string, len(limits))
	for i, l := range limits {
		texts[i] = l.String()
	}
	return strings.Join(texts, " and ")
}

// scanner reads a text word by word and knows where each began.
type scanner struct {
	text    string
	at      int      // where the next word starts
	ofRule  bool     // errors offer only the limits that a rule can hold
	joined  int      // where the first "and" was
	options []string // what else could have stood at the last optional place
}

func (s *scanner) peek() string {
	s.at += len(s.text[s.at:]) - len(strings.TrimLeft(s.text[s.at:], " \t\r\n"))
	word, _, _ := strings.Cut(s.text[s.at:], " ")
	if i := strings.IndexAny(word, "\t\r\n"); i >= 0 {
		word = word[:i]
	}
	return word
}

func (s *scanner) next() { s.at += len(s.peek()) }

// accept steps over word if it is next, and remembers that it could have been.
func (s *scanner) accept(word string) bool {
	if s.peek() != word {
		s.options = append(s.options, strconv.Quote(word))
		return false
	}
	s.next()
	s.options = s.options[:0]
	return true
}

func (s *scanner) unexpected(want string) error {
	return &SyntaxError{Text: s.text, Offset: s.at, Word: s.peek(), Want: want}
}

// wants lists the optional words that could have stood here, and last.
func (s *scanner) wants(last string) string {
	if len(s.options) == 0 {
		return last
	}
	return strings.Join(s.options, ", ") + " or " + last
}

func (s *scanner) end() error {
	if s.peek() != "" {
		return s.unexpected("the end")
	}
	return nil
}

// limits reads one limit, or several joined by "and", to the end of the text.
func (s *scanner) limits() (limits []Limit, err error) {
	for {
		l, err := s.limit()
		if err != nil {
			return nil, err
		}
		limits = append(limits, l)
		if s.peek() == "" {
			return limits, nil
		}
		if s.joined == 0 {
			s.joined = s.at
		}
		if !s.accept("and") {
			return nil, s.unexpected(s.wants("the end"))
		}
	}
}

func (s *scanner) limit() (Limit, error) {
	s.options = s.options[:0]
	first := s.peek()
	if strings.Contains(first, "/") { // a bare rate
		return rated((*scanner).tokenBucket)(s)
	}
	var seconds []string
	for _, k := range kinds {
		word, second, _ := strings.Cut(k.name, " ")
		if word != first {
			continue
		}
		if len(seconds) == 0 {
			s.next()
		}
		if second == "" || second == s.peek() {
			s.at += len(second)
			return k.read(s)
		}
		seconds = append(seconds, strconv.Quote(second))
	}
	if len(seconds) == 0 {
		return nil, s.unexpected(s.wantsLimit())
	}
	return nil, s.unexpected(strings.Join(seconds, " or "))
}

// wantsLimit lists what a limit can begin with.
func (s *scanner) wantsLimit() string {
	var names []string
	for _, k := range kinds {
		if !s.ofRule || k.inRules() {
			names = append(names, k.name)
		}
	}
	return "a rate such as 10/s or a limit (" + strings.Join(names, ", ") + ")"
}

// rated reads the rate that follows the name, and then the rest.
func rated(read func(*scanner, Rate) (Limit, error)) func(*scanner) (Limit, error) {
	return func(s *scanner) (Limit, error) {
		rate, err := s.rate()
		if err != nil {
			return nil, err
		}
		return read(s, rate)
	}
}

func (s *scanner) rate() (Rate, error) {
	const want = "a rate such as 10/s, 5/10s or 1/1h30m"
	count, period, ok := strings.Cut(s.peek(), "/")
	if !ok {
		return Rate{}, s.unexpected(want)
	}
	n, err := parseCount(count)
	if err != nil {
		return Rate{}, s.unexpected(want)
	}
	d, ok := parsePeriod(period)
	if !ok {
		return Rate{}, s.unexpected(want)
	}
	s.next()
	return Rate{Count: n, Period: d}, nil
}

// parseCount reads decimal digits: no sign, so that a limit has one spelling.
func parseCount(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err
}

func (s *scanner) count() (int64, error) {
	n, err := parseCount(s.peek())
	if err != nil {
		return 0, s.unexpected("a whole number")
	}
	s.next()
	return n, nil
}

func (s *scanner) duration() (time.Duration, error) {
	d, ok := parseDuration(s.peek())
	if !ok {
		return 0, s.unexpected("a duration such as 500ms, 10s or 30d")
	}
	s.next()
	return d, nil
}
