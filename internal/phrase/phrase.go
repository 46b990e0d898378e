// Package phrase reads a text word by word, such as the traffic of a simulation or the target of a search, and reports
// where a text does not fit, and which words could stand there.
package phrase

import (
	"strings"

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

// Reader reads words from left to right. It keeps the first error, and reads nothing after it.
type Reader struct {
	text  string
	words []span // not yet read
	Err   error  // the first one, a *weir.SyntaxError that points at a word
}

// Next returns the next word if it suits, and otherwise fails.
func (r *Reader) Next(want string, suits func(word string) bool) string {
	if r.Err != nil {
		return ""
	}
	at, word := len(r.text), ""
	if len(r.words) > 0 {
		at, word = r.words[0].at, r.text[r.words[0].at:r.words[0].end]
	}
	if word == "" || !suits(word) {
		r.Err = &weir.SyntaxError{Text: r.text, Offset: at, Word: word, Want: want}
		return ""
	}
	r.words = r.words[1:]
	return word
}

// Keyword reads a word that must come next.
func (r *Reader) Keyword(word, want string) {
	r.Next(want, func(given string) bool { return given == word })
}

// Accept reads the word if it is next.
func (r *Reader) Accept(word string) bool {
	if r.Err != nil || len(r.words) == 0 || r.text[r.words[0].at:r.words[0].end] != word {
		return false
	}
	r.words = r.words[1:]
	return true
}

// New returns a Reader of a text.
func New(text string) *Reader { return &Reader{text: text, words: wordsOf(text)} }

// Ended reports whether all words are read.
func (r *Reader) Ended() bool { return len(r.words) == 0 }

// Rate reads a rate of 1 in weir.MaxPeriod to 1 a nanosecond.
func (r *Reader) Rate() (rate weir.Rate) {
	r.Next("a rate such as 10/s or 5/10s, up to 1000000000/s", func(word string) (ok bool) {
		var err error
		rate, err = weir.ParseRate(word)
		return err == nil && rate.Count >= 1 && rate.Period <= weir.MaxPeriod && rate.Count <= int64(rate.Period)
	})
	return rate
}
