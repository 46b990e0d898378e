// Package screen fits text to the terminal of a reader: its width and its colours.
package screen

import (
	"strings"
	"unicode/utf8"
)

// Screen is where text is read. The zero Screen is a pipe or a file: it has no colours, and lines of any length.
type Screen struct {
	Columns int // 0: lines of any length
	Colour  bool
}

// Colour is one of a terminal's own colours, which suit its background.
type Colour string

// The colours of outcomes.
const (
	Plain    Colour = ""
	Refused  Colour = "31" // red
	Admitted Colour = "32" // green
)

// Paint returns the text in a colour. Call it after aligning, because the colour adds bytes.
func (s Screen) Paint(text string, c Colour) string {
	if !s.Colour || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// PaintRunes paints each rune in its colour.
func (s Screen) PaintRunes(text string, colours map[rune]Colour) string {
	if !s.Colour {
		return text
	}
	var b, run strings.Builder
	last := Plain
	for _, r := range text {
		if c := colours[r]; c != last {
			b.WriteString(s.Paint(run.String(), last))
			run.Reset()
			last = c
		}
		run.WriteRune(r)
	}
	return b.String() + s.Paint(run.String(), last)
}

// Wrap breaks lines that are too long at spaces. It indents the further parts of a line by a number of spaces.
func (s Screen) Wrap(text string, indent int) string {
	if s.Columns == 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		for first := true; ; first = false {
			if !first {
				line = strings.Repeat(" ", indent) + line
			}
			end := s.lineEnd(line)
			if end == len(line) {
				b.WriteString(line)
				break
			}
			b.WriteString(strings.TrimRight(line[:end], " ") + "\n")
			line = strings.TrimLeft(line[end:], " ")
		}
	}
	return b.String()
}

// lineEnd returns where to break a line: after the last word that fits, or after its first word if that is too long.
func (s Screen) lineEnd(line string) int {
	runes := []rune(strings.TrimSuffix(line, "\n"))
	if len(runes) <= s.Columns {
		return len(line)
	}
	begin := len(line) - len(strings.TrimLeft(line, " "))
	if at := strings.LastIndexByte(string(runes[:s.Columns+1]), ' '); at > begin {
		return at
	}
	if at := strings.IndexByte(line[begin:], ' '); at >= 0 {
		return begin + at
	}
	return len(line)
}

// Shorten cuts a text that is longer than most runes, which are at least one.
func Shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
