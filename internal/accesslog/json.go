package accesslog

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// object reads lines of one JSON object each, and keeps the values of the wanted fields. A path with dots names a nested
// field; an index names an array element, a star the JSON of an array, and a dash the dash that each object has. If a field occurs twice, the last value counts, and twice is
// set.
type object struct {
	slots  map[string]int
	sizes  [64]bool // the lengths of wanted names: rejects most fields early
	values [][]byte // by slot: text of a string, number, true or false; otherwise nil

	twice   bool // a wanted field of the line occurs more than once
	line    []byte
	at      int
	path    []byte
	scratch []byte // the texts of the line that had escapes
}

// maxDepth bounds the nesting, and with it the stack.
const maxDepth = 64

func newObject(names []string) *object {
	o := &object{slots: map[string]int{}}
	for i, name := range names {
		o.slots[name] = i
		o.sizes[min(len(name), len(o.sizes)-1)] = true
	}
	return o
}

// split reads the values of a line. For an invalid line it keeps those before the fault.
func (o *object) split(line []byte, values [][]byte) fit {
	clear(values)
	o.twice = false
	o.values, o.line, o.at, o.path, o.scratch = values, line, 0, o.path[:0], o.scratch[:0]
	o.space()
	if o.at == len(line) || line[o.at] != '{' || !o.object(maxDepth) {
		return fit{}
	}
	o.space()
	return fit{len(values), o.at == len(line), o.at == len(line)}
}

// value reads any value, which is at the current path.
func (o *object) value(depth int) bool {
	if depth == 0 || o.at == len(o.line) {
		return false
	}
	switch o.line[o.at] {
	case '{':
		o.keep(nil)
		outer := len(o.path)
		o.enter(outer, dash)
		o.keep(dash)
		o.path = o.path[:outer]
		return o.object(depth)
	case '[':
		o.keep(nil)
		start, outer := o.at, len(o.path)
		if !o.array(depth) {
			return false
		}
		o.enter(outer, []byte("*"))
		o.keep(o.line[start:o.at])
		o.path = o.path[:outer]
		return true
	case '"':
		text, ok := o.text()
		if ok {
			o.keep(text)
		}
		return ok
	}
	return o.scalar()
}

// object reads an object that starts at the current position.
func (o *object) object(depth int) bool {
	o.at++
	if o.next('}') {
		return true
	}
	outer := len(o.path)
	for {
		o.space()
		name, ok := o.text()
		if !ok || !o.next(':') {
			return false
		}
		o.enter(outer, name)
		o.space()
		if !o.value(depth - 1) {
			return false
		}
		o.path = o.path[:outer]
		if o.next('}') {
			return true
		}
		if !o.next(',') {
			return false
		}
	}
}

// array reads an array that starts at the current position.
func (o *object) array(depth int) bool {
	o.at++
	if o.next(']') {
		return true
	}
	outer := len(o.path)
	for i := 0; ; i++ {
		var digits [20]byte
		o.enter(outer, strconv.AppendInt(digits[:0], int64(i), 10))
		o.space()
		if !o.value(depth - 1) {
			return false
		}
		o.path = o.path[:outer]
		if o.next(']') {
			return true
		}
		if !o.next(',') {
			return false
		}
	}
}

func (o *object) enter(outer int, name []byte) {
	if outer > 0 {
		o.path = append(o.path, '.')
	}
	o.path = append(o.path, name...)
}

// keep stores the value if the current path is wanted.
func (o *object) keep(value []byte) {
	if !o.sizes[min(len(o.path), len(o.sizes)-1)] {
		return
	}
	if slot, ok := o.slots[string(o.path)]; ok {
		o.twice = o.twice || o.values[slot] != nil
		o.values[slot] = value
	}
}

// text reads a string. It copies only a string with escapes.
func (o *object) text() ([]byte, bool) {
	if o.at == len(o.line) || o.line[o.at] != '"' {
		return nil, false
	}
	start := o.at + 1
	end := bytes.IndexByte(o.line[start:], '"')
	for end >= 0 && escaped(o.line[start:start+end]) {
		next := bytes.IndexByte(o.line[start+end+1:], '"')
		if next < 0 {
			return nil, false
		}
		end += 1 + next
	}
	if end < 0 {
		return nil, false
	}
	text := o.line[start : start+end]
	o.at = start + end + 1
	if bytes.IndexByte(text, '\\') < 0 {
		return text, true
	}
	return o.unescape(text)
}

// unescape returns the text of a string with escapes.
func (o *object) unescape(text []byte) ([]byte, bool) {
	begin := len(o.scratch)
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			o.scratch = append(o.scratch, text[i])
			continue
		}
		i++
		switch at := strings.IndexByte(`"\/bfnrt`, text[i]); {
		case at >= 0:
			o.scratch = append(o.scratch, "\"\\/\b\f\n\r\t"[at])
		case text[i] == 'u' && i+4 < len(text):
			r, err := strconv.ParseUint(string(text[i+1:i+5]), 16, 16)
			if err != nil {
				return nil, false
			}
			i += 4
			char := rune(r)
			if utf16.IsSurrogate(char) { // half of a pair, or alone and then no character
				char = utf8.RuneError
				if i+6 < len(text) && text[i+1] == '\\' && text[i+2] == 'u' {
					low, err := strconv.ParseUint(string(text[i+3:i+7]), 16, 16)
					if pair := utf16.DecodeRune(rune(r), rune(low)); err == nil && pair != utf8.RuneError {
						char, i = pair, i+6
					}
				}
			}
			o.scratch = utf8.AppendRune(o.scratch, char)
		default:
			return nil, false
		}
	}
	return o.scratch[begin:len(o.scratch):len(o.scratch)], true
}

// scalar reads a number, true, false or null. A scalar at the end of the line does not count, because the line may be
// cut there.
func (o *object) scalar() bool {
	start := o.at
	for o.at < len(o.line) && !ends(o.line[o.at]) {
		o.at++
	}
	text := o.line[start:o.at]
	switch {
	case o.at == len(o.line):
		return false
	case string(text) == "null":
		o.keep(nil)
	case string(text) == "true", string(text) == "false", isJSONNumber(text):
		o.keep(text)
	default:
		return false
	}
	return true
}

func ends(c byte) bool {
	return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\t' || c == '\r'
}

// isJSONNumber accepts plain digits itself and leaves other texts to encoding/json.
func isJSONNumber(text []byte) bool {
	for _, c := range text {
		if !isDigit(c) {
			return json.Valid(text)
		}
	}
	return len(text) > 0 && (text[0] != '0' || len(text) == 1)
}

// next skips white space, and then c if it follows.
func (o *object) next(c byte) bool {
	o.space()
	if o.at < len(o.line) && o.line[o.at] == c {
		o.at++
		return true
	}
	return false
}

func (o *object) space() {
	for o.at < len(o.line) && (o.line[o.at] == ' ' || o.line[o.at] == '\t' || o.line[o.at] == '\r') {
		o.at++
	}
}
