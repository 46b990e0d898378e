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
//	bursty 5/s over 1s
//	warm up 5/s over 4s cold 3
//
// A bare rate is a token bucket: 60/m is token bucket 60/m, which admits a burst
// of 60. The error is a *SyntaxError that points at the word, or a *LimitError
// where a value is out of bounds.
func ParseLimit(text string) (Limit, error) {
	w := words{text: text}
	limits, err := parseLimits(&w)
	if err != nil {
		return nil, err
	}
	if len(limits) != 1 {
		return nil, &SyntaxError{Text: text, Offset: w.joined, Word: "and", Want: "one limit"}
	}
	return limits[0], nil
}

// ParseLimits reads one limit or several joined by "and".
func ParseLimits(text string) ([]Limit, error) { return parseLimits(&words{text: text}) }

func parseLimits(w *words) ([]Limit, error) {
	limits, err := w.limits()
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
	w := words{text: text, at: len(name) + 1, ofRule: true}
	limits, err := w.limits()
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

// words reads a text word by word and knows where each began.
type words struct {
	text    string
	at      int      // where the next word starts
	ofRule  bool     // errors offer only the limits that a rule can hold
	joined  int      // where the first "and" was
	options []string // what else could have stood at the last optional place
}

func (w *words) peek() string {
	w.at += len(w.text[w.at:]) - len(strings.TrimLeft(w.text[w.at:], " \t\r\n"))
	word, _, _ := strings.Cut(w.text[w.at:], " ")
	if i := strings.IndexAny(word, "\t\r\n"); i >= 0 {
		word = word[:i]
	}
	return word
}

func (w *words) next() { w.at += len(w.peek()) }

// accept steps over word if it is next, and remembers that it could have been.
func (w *words) accept(word string) bool {
	if w.peek() != word {
		w.options = append(w.options, strconv.Quote(word))
		return false
	}
	w.next()
	w.options = w.options[:0]
	return true
}

func (w *words) unexpected(want string) error {
	return &SyntaxError{Text: w.text, Offset: w.at, Word: w.peek(), Want: want}
}

// wants lists the optional words that could have stood here, and last.
func (w *words) wants(last string) string {
	if len(w.options) == 0 {
		return last
	}
	return strings.Join(w.options, ", ") + " or " + last
}

func (w *words) end() error {
	if w.peek() != "" {
		return w.unexpected("the end")
	}
	return nil
}

// limitNames are the one or two words that a limit begins with.
var limitNames = []struct {
	first, second string
	read          func(*words) (Limit, error)
	oneSubject    bool // refused by rules
}{
	{"token", "bucket", rated((*words).tokenBucket), false},
	{"leaky", "bucket", rated((*words).leakyBucket), false},
	{"fixed", "window", rated(func(_ *words, r Rate) (Limit, error) { return FixedWindow{r}, nil }), false},
	{"sliding", "window", rated(func(_ *words, r Rate) (Limit, error) { return SlidingWindow{r}, nil }), false},
	{"sliding", "log", rated((*words).slidingLog), false},
	{"rate", "gate", rated(func(_ *words, r Rate) (Limit, error) { return RateGate{r}, nil }), false},
	{"cycle", "", rated((*words).cycle), false},
	{"concurrency", "", (*words).concurrency, false},
	{"bursty", "", rated((*words).bursty), true},
	{"warm", "up", rated((*words).warmUp), true},
}

// rated reads the rate that follows the name, and then the rest.
func rated(read func(*words, Rate) (Limit, error)) func(*words) (Limit, error) {
	return func(w *words) (Limit, error) {
		rate, err := w.rate()
		if err != nil {
			return nil, err
		}
		return read(w, rate)
	}
}

// limits reads one limit, or several joined by "and", to the end of the text.
func (w *words) limits() (limits []Limit, err error) {
	for {
		l, err := w.limit()
		if err != nil {
			return nil, err
		}
		limits = append(limits, l)
		if w.peek() == "" {
			return limits, nil
		}
		if w.joined == 0 {
			w.joined = w.at
		}
		if !w.accept("and") {
			return nil, w.unexpected(w.wants("the end"))
		}
	}
}

func (w *words) limit() (Limit, error) {
	w.options = w.options[:0]
	first := w.peek()
	if strings.Contains(first, "/") { // a bare rate
		return rated((*words).tokenBucket)(w)
	}
	var seconds []string
	for _, n := range limitNames {
		if n.first == first {
			seconds = append(seconds, strconv.Quote(n.second))
		}
	}
	if len(seconds) == 0 {
		return nil, w.unexpected(w.wantsLimit())
	}
	w.next()
	for _, n := range limitNames {
		if n.first != first || n.second != "" && n.second != w.peek() {
			continue
		}
		if n.second != "" {
			w.next()
		}
		return n.read(w)
	}
	return nil, w.unexpected(strings.Join(seconds, " or "))
}

// wantsLimit lists what a limit can begin with.
func (w *words) wantsLimit() string {
	var names []string
	for _, n := range limitNames {
		if !n.oneSubject || !w.ofRule {
			names = append(names, strings.TrimSpace(n.first+" "+n.second))
		}
	}
	return "a rate such as 10/s or a limit (" + strings.Join(names, ", ") + ")"
}

func (w *words) rate() (Rate, error) {
	const want = "a rate such as 10/s, 5/10s or 1/1h30m"
	count, period, ok := strings.Cut(w.peek(), "/")
	if !ok {
		return Rate{}, w.unexpected(want)
	}
	n, err := parseCount(count)
	if err != nil {
		return Rate{}, w.unexpected(want)
	}
	d, ok := parsePeriod(period)
	if !ok {
		return Rate{}, w.unexpected(want)
	}
	w.next()
	return Rate{Count: n, Period: d}, nil
}

// parseCount reads decimal digits: no sign, so that a limit has one spelling.
func parseCount(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err
}

func (w *words) count() (int64, error) {
	n, err := parseCount(w.peek())
	if err != nil {
		return 0, w.unexpected("a whole number")
	}
	w.next()
	return n, nil
}

func (w *words) duration() (time.Duration, error) {
	d, ok := parseDuration(w.peek())
	if !ok {
		return 0, w.unexpected("a duration such as 500ms, 10s or 30d")
	}
	w.next()
	return d, nil
}

func (w *words) tokenBucket(r Rate) (_ Limit, err error) {
	l := TokenBucket{Rate: r}
	if w.accept("burst") {
		at := w.at
		l.Burst, err = w.count()
		if err == nil && l.Burst == 0 {
			w.at = at
			err = w.unexpected("a burst of at least 1")
		}
	}
	return l, err
}

func (w *words) leakyBucket(r Rate) (_ Limit, err error) {
	l := LeakyBucket{Rate: r}
	if w.accept("queue") {
		if l.Queue, err = w.count(); err != nil {
			return nil, err
		}
	}
	if w.accept("nodelay") {
		l.NoDelay, err = w.count()
	}
	return l, err
}

func (w *words) slidingLog(r Rate) (_ Limit, err error) {
	l := SlidingLog{Rate: r}
	if w.accept("gap") {
		if l.Gap, err = w.duration(); err != nil {
			return nil, err
		}
	}
	if w.accept("count") {
		if !w.accept("denied") {
			return nil, w.unexpected(strconv.Quote("denied"))
		}
		l.CountDenied = true
	}
	return l, nil
}
