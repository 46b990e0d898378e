package simulate

import (
	"slices"
	"strconv"
	"time"
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
