package accesslog

import (
	"bytes"
	"slices"
	"strings"
	"time"
)

// fit says how much of a line a format explains.
type fit struct {
	found int  // variables
	whole bool // all of the format is there; otherwise the line is cut short, or in another format
	exact bool // and there is no text behind it
}

// splitter finds the values of the variables of a line.
type splitter interface {
	split(line []byte, values [][]byte) fit
}

// layout is how the lines of one log are read.
type layout struct {
	format *format
	names  []string
	split  splitter
	values [][]byte // the values of the last line, by name
	fits   string   // why it was chosen

	wrapper   *format
	unwrapped string   // the reason to reject a line that is not wrapped
	unwrapper splitter // nil for none
	wrapping  [][]byte
	lineAt    int
	header    []byte // the line that names the columns

	chosen   chosen
	slots    []binding
	step     time.Duration // the finest that the first lines tell
	zoneless bool          // a time of the first lines is
	broken   bool          // the last line is no whole object
	clients  *clients
	moment   []byte // of two columns
	paired   bool   // a line of objects has a time in two fields
	target   []byte // of two columns
	stamped  stamped
	last     Entry
}

// stamped is the last time that was read, and of which variable. Many lines have the same.
type stamped struct {
	name string
	text []byte
	stamp
}

// chosen are the variables that hold what every entry needs. Those that a log lacks are empty, and their places -1.
type chosen struct {
	time, clock, client, forwarded, took string // clock is the second column of a time
	timeAt, clockAt, tookAt, userAt      int
	linesAt                              int   // the place of a list in several lines
	peerAt, forwardedAt                  []int // the best first
}

// binding is where a log has a field.
type binding struct {
	kind    kind
	sources []placed
	missing string
}

type placed struct {
	at    int
	take  func([]byte) []byte
	query int // the place of the query that belongs to the value, or -1
}

// newLayout returns the layout of a format for lines such as these, and whether they have the parts that the format must
// have. Without these the layout reads what it can, for a format that the user has named.
func newLayout(f *format, lines [][]byte, r *Reader) (l *layout, has bool) {
	l = &layout{format: f, clients: &r.clients}
	switch f.shape {
	case byPattern:
		p, _ := parsePattern(f.pattern, !f.told || f.name != "pattern")
		l.split, l.names = p, p.names()
	case byJSON:
		l.names = f.mayNeed(r.wanted)
		l.split = newObject(l.names)
	case byColumns:
		l.columns(newColumns(lines[0]), lines[0])
	case byFields:
		header := []byte(fieldsDirective) // of no columns, until a line names them
		if i := slices.IndexFunc(lines, isFields); i >= 0 {
			header = lines[i]
		}
		l.columns(fieldsOf(header), header)
	}
	l.values = make([][]byte, len(l.names))
	has = l.choose(lines)
	l.bind(r.wanted)
	return l, has
}

func (l *layout) columns(c *columns, header []byte) {
	l.split, l.names, l.header = c, c.names, bytes.Clone(header)
}

const fieldsDirective = "#Fields:"

func isFields(line []byte) bool { return bytes.HasPrefix(line, []byte(fieldsDirective)) }

// fieldsOf returns the columns that a directive of the W3C's format names.
func fieldsOf(line []byte) *columns {
	c := &columns{names: strings.Fields(string(line[len(fieldsDirective):])), separator: ' '}
	if slices.Contains(c.names, "x-edge-location") {
		c.separator = '\t'
	}
	return c
}

// isHeader reports whether a line names columns, and reads the names.
func (l *layout) isHeader(line []byte, wanted []field) bool {
	switch {
	case l.format.shape == byColumns:
		return bytes.Equal(line, l.header)
	case l.format.shape != byFields || len(line) == 0 || line[0] != '#':
		return false
	case isFields(line) && !bytes.Equal(line, l.header):
		l.columns(fieldsOf(line), line)
		l.values = make([][]byte, len(l.names))
		l.chooseNamed()
		l.bind(wanted)
	}
	return true
}

// inColumns reports whether each line has a value for each variable.
func (l *layout) inColumns() bool { return l.format.shape == byColumns || l.format.shape == byFields }

// mayNeed are the fields of objects that may be read.
func (f *format) mayNeed(wanted []field) (names []string) {
	names = slices.Concat(f.timeList(), f.clientList(), f.forwardedList(), []string{forwardedLines}, strings.Fields(f.needs))
	if f.took != "" {
		names = append(names, f.took)
	}
	for _, w := range wanted {
		for _, s := range f.sourcesOf(w) {
			names = append(names, s.name)
			if s.query != "" {
				names = append(names, s.query)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (f *format) timeList() []string {
	if f.time == "" {
		return timeNames
	}
	return strings.Fields(f.time)
}

func (f *format) clientList() []string {
	switch f.client {
	case "":
		return clientNames
	case "-":
		return nil
	}
	return strings.Fields(f.client)
}
