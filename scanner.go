package weir

import (
	"strconv"
	"time"

	"github.com/weirflow/weir/internal/duration"
	"github.com/weirflow/weir/internal/scan"
)

// scanner reads the text of limits.
type scanner struct {
	scan.Scanner
	ofRule   bool // errors offer only limits that a rule can hold
	firstAnd int  // the place of the first "and"
}

func scannerOf(text string) *scanner { return &scanner{Scanner: scan.Scanner{Text: text}} }

func (s *scanner) unexpected(want string) error {
	return &SyntaxError{Text: s.Text, Offset: s.At, Word: s.Peek(), Want: want}
}

func (s *scanner) end() error {
	if s.Peek() != "" {
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
	n, err := parseCount(s.Peek())
	if err != nil {
		return 0, s.unexpected("a whole number")
	}
	s.Next()
	return n, nil
}

func (s *scanner) duration() (time.Duration, error) {
	d, ok := duration.Parse(s.Peek())
	if !ok {
		return 0, s.unexpected("a duration such as 500ms, 10s or 30d")
	}
	s.Next()
	return d, nil
}
