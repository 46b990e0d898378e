package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

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
		return err == nil && isDigit(word[0]) && d >= least && d <= weir.MaxPeriod
	})
	return d
}

// count reads a whole number.
func (r *patternReader) count(least, most int64) (n int64) {
	r.next(fmt.Sprintf("a whole number from %d to %d", least, most), func(word string) bool {
		var err error
		n, err = strconv.ParseInt(word, 10, 64)
		return err == nil && isDigit(word[0]) && n >= least && n <= most
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
