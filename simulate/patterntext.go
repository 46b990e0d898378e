package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

// ParsePattern reads the text form of made-up traffic:
//
//	constant 50/s
//	poisson 50/s
//	burst 200/s for 1s every 10s
//	ramp 1/s to 100/s over 1m
//	diurnal 5/s to 50/s every 1d
//	flash 10/s to 500/s at 20s for 5s
//	storm 500 at 5s
//	log access.log thin 10% speed 60
//
// These words may follow each:
//
//	from 100 clients skew 1.1
//	cost 5 | cost 1 to 10 | cost about 20 | cost 1 or 50 at 2%
//	retry obeying | retry every 100ms, with: jitter 1s, up to 5 times
//
// "and" adds traffic: constant 5/s and burst 200/s for 1s every 10s. The error is a [*weir.SyntaxError] that points at
// the word.
func ParsePattern(text string) (Pattern, error) {
	p := Pattern{text: text}
	r := patternReader{text: text, words: wordsOf(text)}
	for {
		p.streams = append(p.streams, r.stream())
		if r.err != nil {
			return Pattern{}, r.err
		}
		if len(r.words) == 0 {
			return p, nil
		}
		r.keyword("and", r.wanted+`"and" or the end`)
	}
}

// shapes are the first words of a stream, with the readers of the rest.
var shapes = []struct {
	name string
	read func(r *patternReader, s *stream)
}{
	{"constant", (*patternReader).constant},
	{"poisson", (*patternReader).poisson},
	{"burst", (*patternReader).burst},
	{"ramp", (*patternReader).ramp},
	{"diurnal", (*patternReader).diurnal},
	{"flash", (*patternReader).flash},
	{"storm", (*patternReader).storm},
	{"log", (*patternReader).log},
}

const shapeNames = "constant, poisson, burst, ramp, diurnal, flash, storm or log"

func (r *patternReader) stream() (s stream) {
	at := -1
	r.next(shapeNames, func(word string) bool {
		for i := range shapes {
			if shapes[i].name == word {
				at = i
			}
		}
		return at >= 0
	})
	if r.err == nil {
		shapes[at].read(r, &s)
		r.modify(&s)
	}
	return s
}

func (r *patternReader) constant(s *stream) {
	rate := r.rate()
	if r.err == nil {
		s.arrivals, s.least = constant(rate), perNano(rate)
	}
}

func (r *patternReader) poisson(s *stream) {
	rate := r.rate()
	if r.err == nil {
		s.arrivals, s.least = poisson(rate), perNano(rate)/2 // half of many is more than any chance takes away
	}
}

func (r *patternReader) burst(s *stream) {
	rate := r.rate()
	r.keyword("for", `"for"`)
	on := r.duration(1)
	r.keyword("every", `"every"`)
	s.arrivals = burst(rate, on, r.duration(on))
}

func (r *patternReader) ramp(s *stream) {
	from, to := r.rates()
	r.keyword("over", `"over"`)
	s.arrivals = ramp(from, to, r.duration(1))
}

func (r *patternReader) diurnal(s *stream) {
	from, to := r.rates()
	r.keyword("every", `"every"`)
	s.arrivals = diurnal(from, to, r.duration(1))
}

func (r *patternReader) flash(s *stream) {
	from, to := r.rates()
	r.keyword("at", `"at"`)
	start := r.duration(0)
	r.keyword("for", `"for"`)
	s.arrivals = flash(from, to, start, r.duration(1))
}

func (r *patternReader) storm(s *stream) {
	n := r.count(1, maxOffered)
	r.keyword("at", `"at"`)
	s.arrivals = storm(n, r.duration(0))
	s.clients = clients{count: int(min(n, maxClients)), inTurn: true}
}

func (r *patternReader) log(s *stream) {
	s.log = &logStream{share: 1, speed: 1}
	s.log.name = r.next("the name of a log", func(string) bool { return true })
	if r.accept("thin") {
		s.log.share = r.percent()
	}
	if r.accept("speed") {
		s.log.speed = r.decimal("a factor from 0.001 to 1000000", 0.001, 1e6)
	}
}

// modify reads the words after a shape, each at most once.
func (r *patternReader) modify(s *stream) {
	left := []string{"from", "cost", "retry"}
	if s.log != nil {
		left = left[1:] // its clients are those of the log
	}
	for r.err == nil {
		i := slices.IndexFunc(left, r.accept)
		if i < 0 {
			break
		}
		switch left[i] {
		case "from":
			r.clients(s)
		case "cost":
			s.costs = r.costs()
		case "retry":
			s.retry = r.retry()
		}
		left = slices.Delete(left, i, i+1)
	}
	r.wanted = ""
	for _, word := range left {
		r.wanted += strconv.Quote(word) + ", "
	}
}

func (r *patternReader) clients(s *stream) {
	s.clients.count = int(r.count(1, maxClients))
	r.keyword("clients", `"clients"`)
	if r.accept("skew") {
		s.clients.skew = r.decimal("a number from 0 to 10", 0, maxSkew)
	}
}

func (r *patternReader) costs() costs {
	if r.accept("about") {
		return geometricCost(r.count(1, maxCost/100))
	}
	n := r.count(1, maxCost)
	switch {
	case r.accept("to"):
		return evenCost(n, max(n, r.count(n, maxCost)))
	case r.accept("or"):
		rare := r.count(1, maxCost)
		r.keyword("at", `"at"`)
		return rareCost(n, rare, r.percent())
	}
	return fixedCost(n)
}

func (r *patternReader) retry() (again retry) {
	again.on = true
	if !r.accept("obeying") {
		r.keyword("every", `"obeying" or "every"`)
		again.every = r.duration(time.Millisecond)
	}
	if r.accept("jitter") {
		again.jitter = r.duration(1)
	}
	if r.accept("up") {
		r.keyword("to", `"to"`)
		again.most = r.count(1, maxOffered)
		r.keyword("times", `"times"`)
	}
	return again
}

// span is a word of a text and its place.
type span struct{ at, end int }

func wordsOf(text string) (words []span) {
	at := 0
	for word := range strings.FieldsSeq(text) {
		at += strings.Index(text[at:], word)
		words = append(words, span{at, at + len(word)})
		at += len(word)
	}
	return words
}

// patternReader reads words from left to right. It keeps the first error, and reads nothing after it.
type patternReader struct {
	text   string
	words  []span // not yet read
	wanted string // the modifiers that may still follow
	err    error
}

// next returns the next word if it suits, and otherwise fails.
func (r *patternReader) next(want string, suits func(word string) bool) string {
	if r.err != nil {
		return ""
	}
	at, word := len(r.text), ""
	if len(r.words) > 0 {
		at, word = r.words[0].at, r.text[r.words[0].at:r.words[0].end]
	}
	if word == "" || !suits(word) {
		r.err = &weir.SyntaxError{Text: r.text, Offset: at, Word: word, Want: want}
		return ""
	}
	r.words = r.words[1:]
	return word
}

func (r *patternReader) keyword(word, want string) {
	r.next(want, func(given string) bool { return given == word })
}

// accept reads the word if it is next.
func (r *patternReader) accept(word string) bool {
	if r.err != nil || len(r.words) == 0 || r.text[r.words[0].at:r.words[0].end] != word {
		return false
	}
	r.words = r.words[1:]
	return true
}

func (r *patternReader) rates() (from, to weir.Rate) {
	from = r.rate()
	r.keyword("to", `"to"`)
	return from, r.rate()
}

// rate reads a rate of 1 in weir.MaxPeriod to 1 a nanosecond.
func (r *patternReader) rate() (rate weir.Rate) {
	r.next("a rate such as 10/s or 5/10s, up to 1000000000/s", func(word string) (ok bool) {
		var err error
		rate, err = weir.ParseRate(word)
		return err == nil && rate.Count >= 1 && rate.Period <= weir.MaxPeriod && rate.Count <= int64(rate.Period)
	})
	return rate
}

// duration reads a duration from least to weir.MaxPeriod, spelled like the period of a rate with a number.
func (r *patternReader) duration(least time.Duration) time.Duration {
	var d time.Duration
	want := "a duration such as 500ms or 10s"
	if least > 1 {
		want = "a duration of at least " + least.String()
	}
	r.next(want, func(word string) bool {
		if least == 0 && word == "0s" {
			return true
		}
		rate, err := weir.ParseRate("1/" + word)
		d = rate.Period
		return err == nil && word[0] >= '0' && word[0] <= '9' && d >= least && d <= weir.MaxPeriod
	})
	return d
}

// count reads a whole number.
func (r *patternReader) count(least, most int64) (n int64) {
	r.next(fmt.Sprintf("a whole number from %d to %d", least, most), func(word string) bool {
		var err error
		n, err = strconv.ParseInt(word, 10, 64)
		return err == nil && word[0] >= '0' && word[0] <= '9' && n >= least && n <= most
	})
	return n
}

// decimal reads a number in plain digits.
func (r *patternReader) decimal(want string, least, most float64) (n float64) {
	r.next(want, func(word string) bool {
		var err error
		n, err = strconv.ParseFloat(word, 64)
		plain := strings.Trim(word, "0123456789.") == ""
		return err == nil && plain && n >= least && n <= most
	})
	return n
}

// percent reads a percentage as a share.
func (r *patternReader) percent() (share float64) {
	r.next("a percentage such as 10%, up to 100%", func(word string) bool {
		number, found := strings.CutSuffix(word, "%")
		n, err := strconv.ParseFloat(number, 64)
		share = n / 100
		return found && err == nil && strings.Trim(number, "0123456789.") == "" && share > 0 && share <= 1
	})
	return share
}
