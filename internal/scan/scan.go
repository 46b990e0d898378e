// Package scan reads a text word by word: Scanner. Scanner.Nginx reads directives of nginx. Meant guesses what a text that
// cannot be read was meant to say.
package scan

import (
	"strconv"
	"strings"
)

// Scanner reads Text. It is at the start of a word, or of the space before it.
type Scanner struct {
	Text    string
	At      int      // the start of the next word
	options []string // the words that could stand at the last optional place
}

// Peek returns the next word, and moves to its start.
func (s *Scanner) Peek() string {
	s.At += len(s.Text[s.At:]) - len(strings.TrimLeft(s.Text[s.At:], " \t\r\n"))
	word, _, _ := strings.Cut(s.Text[s.At:], " ")
	if i := strings.IndexAny(word, "\t\r\n"); i >= 0 {
		word = word[:i]
	}
	return word
}

// Next skips the next word.
func (s *Scanner) Next() { s.At += len(s.Peek()) }

// Accept skips word if it is next, and otherwise notes it as a possible word.
func (s *Scanner) Accept(word string) bool {
	if s.Peek() != word {
		s.options = append(s.options, strconv.Quote(word))
		return false
	}
	s.Next()
	s.Forget()
	return true
}

// Forget drops the possible words.
func (s *Scanner) Forget() { s.options = s.options[:0] }

// Wants lists the possible words, and last.
func (s *Scanner) Wants(last string) string {
	if len(s.options) == 0 {
		return last
	}
	return strings.Join(s.options, ", ") + " or " + last
}
