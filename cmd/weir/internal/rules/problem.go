package rules

import (
	"fmt"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// Problem is a fault of a file.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"` // from 1; 0 for a fault of the whole file
	Column int    `json:"column,omitempty"`
	Source string `json:"-"`               // the line
	Width  int    `json:"-"`               // of the faulty text, in characters
	Where  string `json:"where,omitempty"` // the rule and the field: rule "login": limit
	Text   string `json:"text"`            // the fault, and the expected form
	Meant  string `json:"meant,omitempty"` // the text that was probably meant, or ""
}

// maxShown bounds the problems that are shown.
const maxShown = 100

// Problems is the error of files. It is not empty.
type Problems []Problem

// Shown returns the problems that are shown.
func (ps Problems) Shown() Problems { return ps[:min(len(ps), maxShown)] }

func (ps Problems) Error() string {
	var b strings.Builder
	for i, p := range ps {
		if i == maxShown {
			fmt.Fprintf(&b, "and %s", plain.Plural(int64(len(ps)-maxShown), "further problem"))
			break
		}
		b.WriteString(p.String())
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Sentence shows the problem in one line.
func (p Problem) Sentence() string {
	var b strings.Builder
	b.WriteString(plain.Printable(p.File))
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Where != "" {
		b.WriteString(p.Where + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// String shows the problem with the line and a mark below the faulty text.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.Sentence())
	if p.Line > 0 {
		source, at := window(plain.Printable(p.Source), p.Column-1)
		number := fmt.Sprintf("%4d | ", p.Line)
		fmt.Fprintf(&b, "\n%s%s", number, source)
		carets := max(1, min(p.Width, len([]rune(source))-at))
		fmt.Fprintf(&b, "\n     | %s%s", strings.Repeat(" ", at+max(0, len(number)-7)), strings.Repeat("^", carets))
	}
	if p.Meant != "" {
		fmt.Fprintf(&b, "\n     did you mean %q?", p.Meant)
	}
	return b.String()
}

// window returns the part of a long line around a column, and the place of the column in it.
func window(line string, at int) (string, int) {
	const width, before = 120, 60
	runes := []rune(line)
	at = min(max(at, 0), len(runes))
	if len(runes) <= width {
		return line, at
	}
	from := min(max(0, at-before), len(runes)-width)
	return string(runes[from : from+width]), at - from
}

// nearest returns the known word that a mistyped word is closest to, or "".
func nearest(word string, known []string) (best string) {
	if len(word) > 64 {
		return ""
	}
	least := 1 + len(word)/3
	for _, k := range known {
		if d := distance(strings.ToLower(word), k); d <= least && k != word {
			best, least = k, d-1
		}
	}
	return best
}

// distance counts the letters to insert, remove or replace, and neighbours to swap.
func distance(a, b string) int {
	older, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			same := 1
			if a[i] == b[j] {
				same = 0
			}
			row[j+1] = min(last[j]+same, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
		older, last = last, row
	}
	return last[len(b)]
}

// Refused returns an error of rules files as one of the command.
func Refused(command string, err error) error {
	if problems, _ := err.(Problems); isUnread(problems) {
		return RefusedFor(command, err, "name a file with rules, or a directory of such files; docs/reference/rules.md describes them")
	}
	return RefusedFor(command, err, "docs/reference/rules.md describes rules files; weir rules schema prints the schema for editors")
}

// RefusedFor adds a hint to problems of files. A single file that cannot be read needs no list.
func RefusedFor(command string, err error, hint string) error {
	problems, ok := err.(Problems)
	switch {
	case !ok:
		return err
	case isUnread(problems):
		return plain.Fail(fmt.Errorf("%s: %w", command, err), hint)
	}
	return plain.Fail(fmt.Errorf("%s: %s\n%w", command, plain.Plural(int64(len(problems)), "problem"), err), hint)
}

// isUnread reports whether the only problem is a file that cannot be read.
func isUnread(ps Problems) bool { return len(ps) == 1 && ps[0].Line == 0 }
