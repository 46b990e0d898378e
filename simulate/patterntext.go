package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/phrase"
	"github.com/weirflow/weir/internal/replay"
	"github.com/weirflow/weir/internal/tape"
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
	r := patternReader{Reader: phrase.New(text)}
	for {
		p.streams = append(p.streams, r.stream())
		if r.Err != nil {
			return Pattern{}, r.Err
		}
		if r.Ended() {
			return p, nil
		}
		r.Keyword("and", r.wanted+`"and" or the end`)
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
	r.Next(shapeNames, func(word string) bool {
		for i := range shapes {
			if shapes[i].name == word {
				at = i
			}
		}
		return at >= 0
	})
	if r.Err == nil {
		shapes[at].read(r, &s)
		r.modify(&s)
	}
	return s
}

func (r *patternReader) constant(s *stream) {
	rate := r.Rate()
	if r.Err == nil {
		s.arrivals, s.least = constant(rate), tape.PerNano(rate)
	}
}

func (r *patternReader) poisson(s *stream) {
	rate := r.Rate()
	if r.Err == nil {
		s.arrivals, s.least = poisson(rate), tape.PerNano(rate)/2 // half of many is more than any chance takes away
	}
}

func (r *patternReader) burst(s *stream) {
	rate := r.Rate()
	r.Keyword("for", `"for"`)
	on := r.duration(1)
	r.Keyword("every", `"every"`)
	s.arrivals = burst(rate, on, r.duration(on))
}

func (r *patternReader) ramp(s *stream) {
	from, to := r.rates()
	r.Keyword("over", `"over"`)
	s.arrivals = ramp(from, to, r.duration(1))
}

func (r *patternReader) diurnal(s *stream) {
	from, to := r.rates()
	r.Keyword("every", `"every"`)
	s.arrivals = diurnal(from, to, r.duration(1))
}

func (r *patternReader) flash(s *stream) {
	from, to := r.rates()
	r.Keyword("at", `"at"`)
	start := r.duration(0)
	r.Keyword("for", `"for"`)
	s.arrivals = flash(from, to, start, r.duration(1))
}

func (r *patternReader) storm(s *stream) {
	n := r.count(1, maxOffered)
	r.Keyword("at", `"at"`)
	s.arrivals = storm(n, r.duration(0))
	s.clients = clients{count: int(min(n, maxClients)), inTurn: true}
}

func (r *patternReader) log(s *stream) {
	s.log = &logStream{share: 1, speed: 1}
	s.log.name = r.Next("the name of a log", func(string) bool { return true })
	if r.Accept("thin") {
		s.log.share = r.percent()
	}
	if r.Accept("speed") {
		s.log.speed = r.decimal("a factor from 0.001 to 1000000", 0.001, 1e6)
	}
}

// modify reads the words after a shape, each at most once.
func (r *patternReader) modify(s *stream) {
	left := []string{"from", "cost", "retry"}
	if s.log != nil {
		left = left[1:] // its clients are those of the log
	}
	for r.Err == nil {
		i := slices.IndexFunc(left, r.Accept)
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
	r.Keyword("clients", `"clients"`)
	if r.Accept("skew") {
		s.clients.skew = r.decimal("a number from 0 to 10", 0, maxSkew)
	}
}

func (r *patternReader) costs() costs {
	if r.Accept("about") {
		return geometricCost(r.count(1, replay.MaxCost/100))
	}
	n := r.count(1, replay.MaxCost)
	switch {
	case r.Accept("to"):
		return evenCost(n, max(n, r.count(n, replay.MaxCost)))
	case r.Accept("or"):
		rare := r.count(1, replay.MaxCost)
		r.Keyword("at", `"at"`)
		return rareCost(n, rare, r.percent())
	}
	return fixedCost(n)
}

func (r *patternReader) retry() (again retry) {
	again.on = true
	if !r.Accept("obeying") {
		r.Keyword("every", `"obeying" or "every"`)
		again.every = r.duration(time.Millisecond)
	}
	if r.Accept("jitter") {
		again.jitter = r.duration(1)
	}
	if r.Accept("up") {
		r.Keyword("to", `"to"`)
		again.most = r.count(1, maxOffered)
		r.Keyword("times", `"times"`)
	}
	return again
}

// patternReader reads the text of traffic from left to right.
type patternReader struct {
	*phrase.Reader
	wanted string // the modifiers that may still follow
}

func (r *patternReader) rates() (from, to weir.Rate) {
	from = r.Rate()
	r.Keyword("to", `"to"`)
	return from, r.Rate()
}

// duration reads a duration from least to weir.MaxPeriod, spelled like the period of a rate with a number.
func (r *patternReader) duration(least time.Duration) time.Duration {
	var d time.Duration
	want := "a duration such as 500ms or 10s"
	if least > 1 {
		want = "a duration of at least " + least.String()
	}
	r.Next(want, func(word string) bool {
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
	r.Next(fmt.Sprintf("a whole number from %d to %d", least, most), func(word string) bool {
		var err error
		n, err = strconv.ParseInt(word, 10, 64)
		return err == nil && word[0] >= '0' && word[0] <= '9' && n >= least && n <= most
	})
	return n
}

// decimal reads a number in plain digits.
func (r *patternReader) decimal(want string, least, most float64) (n float64) {
	r.Next(want, func(word string) bool {
		var err error
		n, err = strconv.ParseFloat(word, 64)
		plain := strings.Trim(word, "0123456789.") == ""
		return err == nil && plain && n >= least && n <= most
	})
	return n
}

// percent reads a percentage as a share.
func (r *patternReader) percent() (share float64) {
	r.Next("a percentage such as 10%, up to 100%", func(word string) bool {
		number, found := strings.CutSuffix(word, "%")
		n, err := strconv.ParseFloat(number, 64)
		share = n / 100
		return found && err == nil && strings.Trim(number, "0123456789.") == "" && share > 0 && share <= 1
	})
	return share
}
