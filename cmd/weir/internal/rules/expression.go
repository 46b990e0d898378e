package rules

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxExpression bounds the length of a regular expression.
const maxExpression = 512

// readExpression reads ~EXPRESSION, or ~*EXPRESSION, which ignores case, as those of hosts and methods always do: their
// values have one case.
func (p *pattern) readExpression(f family) (err error) {
	text, caseless := strings.CutPrefix(p.source[1:], "*")
	if caseless || f == asHost || f == asMethod {
		text = "(?i)" + text
	}
	switch {
	case f == asPath:
		return errors.New("is a regular expression, which path does not take, because it has one normal form; use uri")
	case len(text) > maxExpression:
		return fmt.Errorf("is a regular expression of %d bytes, want at most %d", len(text), maxExpression)
	}
	p.kind = expression
	if p.regexp, err = regexp.Compile(latin1(text)); err != nil {
		return fmt.Errorf("is no regular expression: %w", err)
	}
	return nil
}

// fitsExpression reads each byte as one character, and ignores a final newline, as the gateways do whose regular expressions
// are matched here.
func (p *pattern) fitsExpression(text string) bool {
	text = latin1(text)
	if p.regexp.MatchString(text) {
		return true
	}
	line, ended := strings.CutSuffix(text, "\n")
	return ended && p.regexp.MatchString(line)
}

// latin1 returns a text that has the bytes of this one as characters.
func latin1(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return text
	}
	runes := make([]rune, len(text))
	for i := range runes {
		runes[i] = rune(text[i])
	}
	return string(runes)
}
