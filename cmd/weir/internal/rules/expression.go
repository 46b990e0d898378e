package rules

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
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
	if parsed, err := syntax.Parse(latin1(text), syntax.Perl); err == nil {
		p.words = wordsOf(parsed)
	}
	return nil
}

// mostWords bounds the words of an expression.
const mostWords = 16

// wordsOf returns words one of which fits where the expression fits, and nowhere else, in lower case: those of (?i)bot|crawler. It returns
// nil for other expressions. Words are much quicker to find, and most rules about user agents have some.
func wordsOf(e *syntax.Regexp) (words []string) {
	switch e.Op {
	case syntax.OpEmptyMatch:
		return []string{""}
	case syntax.OpLiteral:
		word := strings.ToLower(string(e.Rune))
		if e.Flags&syntax.FoldCase == 0 || strings.ContainsFunc(word, func(r rune) bool { return r >= utf8.RuneSelf }) {
			return nil
		}
		return []string{word}
	case syntax.OpCapture:
		return wordsOf(e.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range e.Sub {
			more := wordsOf(sub)
			if more == nil || len(words)+len(more) > mostWords {
				return nil
			}
			words = append(words, more...)
		}
	case syntax.OpConcat: // of the words that alternatives begin with
		words = []string{""}
		for _, sub := range e.Sub {
			words = joined(words, wordsOf(sub))
		}
	}
	return words
}

// joined returns each of some words with each of others behind it, or nil if they are too many.
func joined(words, behind []string) (all []string) {
	if len(words)*len(behind) > mostWords {
		return nil
	}
	for _, first := range words {
		for _, last := range behind {
			all = append(all, first+last)
		}
	}
	return all
}

// hasWord reports whether a text has one of some words in it. Their letters are small and of ASCII, and those of the text of any case.
func hasWord(text string, words []string) bool {
	for at := range len(text) + 1 {
		for _, word := range words {
			if beginsWith(text[at:], word) {
				return true
			}
		}
	}
	return false
}

func beginsWith(text, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := range len(word) {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// fitsExpression reads each byte as one character, and ignores a final newline, as the gateways do whose regular expressions
// are matched here.
func (p *pattern) fitsExpression(text string) bool {
	if p.words != nil {
		return hasWord(text, p.words)
	}
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
