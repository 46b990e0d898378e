package weir

import (
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir/internal/duration"
)

// scanner reads a text word by word.
type scanner struct {
	text     string
	at       int      // the start of the next word
	ofRule   bool     // errors offer only limits that a rule can hold
	firstAnd int      // the place of the first "and"
	options  []string // the words that could stand at the last optional place
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

// accept skips word if it is next, and otherwise notes it as a possible word.
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

// wants lists the optional words that could stand here, and last.
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

// parseCount reads decimal digits without a sign, so that a limit has one spelling.
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
	d, ok := duration.Parse(s.peek())
	if !ok {
		return 0, s.unexpected("a duration such as 500ms, 10s or 30d")
	}
	s.next()
	return d, nil
}
