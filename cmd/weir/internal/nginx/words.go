package nginx

import (
	"errors"
	"strings"
)

// words splits a text into words and marks, as nginx does: quotes count at the beginning of a word alone, and a brace within
// a word begins a block unless it follows a $.
type words struct {
	text string
	at   int
	file string
	line int
}

// directive reads words up to a mark: ; { } or 0 at the end of the text.
func (w *words) directive(d *directive) (mark byte, err error) {
	for {
		w.skipSpace()
		if w.at == len(w.text) {
			return 0, nil
		}
		if len(d.words) == 0 {
			d.line = w.line
		}
		switch c := w.text[w.at]; c {
		case ';', '{', '}':
			w.at++
			return c, nil
		case '"', '\'':
			word, err := w.quoted(c)
			if err != nil {
				return 0, err
			}
			d.words = append(d.words, word)
		default:
			d.words = append(d.words, w.plain())
		}
	}
}

func (w *words) skipSpace() {
	for ; w.at < len(w.text); w.at++ {
		switch w.text[w.at] {
		case '\n':
			w.line++
		case ' ', '\t', '\r':
		case '#':
			end := strings.IndexByte(w.text[w.at:], '\n')
			if end < 0 {
				w.at = len(w.text)
				return
			}
			w.at += end - 1
		default:
			return
		}
	}
}

// quoted reads a word in quotes. A space or mark must follow.
func (w *words) quoted(quote byte) (string, error) {
	w.at++
	for start := w.at; w.at < len(w.text); w.at++ {
		switch w.text[w.at] {
		case '\\':
			w.at++
		case '\n':
			w.line++
		case quote:
			word := unescaped(w.text[start:w.at])
			if w.at++; w.at < len(w.text) && strings.IndexByte(" \t\r\n;{)", w.text[w.at]) < 0 {
				return "", errors.New("a space or mark is missing after a quoted word")
			}
			return word, nil
		}
	}
	return "", errors.New("a quoted word has no end")
}

// plain reads a word without quotes.
func (w *words) plain() string {
	start := w.at
	for ; w.at < len(w.text); w.at++ {
		c := w.text[w.at]
		if strings.IndexByte(" \t\r\n;", c) >= 0 || c == '{' && w.text[w.at-1] != '$' {
			break
		}
		if c == '\\' && w.at+1 < len(w.text) {
			w.at++
		}
		if w.text[w.at] == '\n' {
			w.line++
		}
	}
	return unescaped(w.text[start:min(w.at, len(w.text))])
}

// unescaped replaces what nginx replaces in a word: \" \' \\ \t \r \n. Other backslashes stay.
func unescaped(word string) string {
	if strings.IndexByte(word, '\\') < 0 {
		return word
	}
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		c := word[i]
		if c == '\\' && i+1 < len(word) {
			if at := strings.IndexByte(`"'\trn`, word[i+1]); at >= 0 {
				c = "\"'\\\t\r\n"[at]
				i++
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}
