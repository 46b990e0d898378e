package simulate

import (
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
//
// "and" adds traffic: constant 5/s and burst 200/s for 1s every 10s. The error is a [*weir.SyntaxError] that points at
// the word.
func ParsePattern(text string) (Pattern, error) {
	p := Pattern{text: text}
	r := patternReader{text: text, words: wordsOf(text)}
	for {
		p.parts = append(p.parts, r.part())
		if r.err != nil {
			return Pattern{}, r.err
		}
		if len(r.words) == 0 {
			return p, nil
		}
		r.keyword("and", `"and" or the end`)
	}
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
	text  string
	words []span // not yet read
	err   error
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

func (r *patternReader) part() arrivals {
	kind := r.next("constant, poisson, burst or ramp", func(word string) bool {
		return word == "constant" || word == "poisson" || word == "burst" || word == "ramp"
	})
	rate := r.rate()
	switch kind {
	case "poisson":
		return poisson(rate)
	case "burst":
		r.keyword("for", `"for"`)
		on := r.duration(1)
		r.keyword("every", `"every"`)
		return burst(rate, on, r.duration(on))
	case "ramp":
		r.keyword("to", `"to"`)
		to := r.rate()
		r.keyword("over", `"over"`)
		return ramp(rate, to, r.duration(1))
	}
	return constant(rate)
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
		rate, err := weir.ParseRate("1/" + word)
		d = rate.Period
		return err == nil && isDigit(word[0]) && d >= least && d <= weir.MaxPeriod
	})
	return d
}
