package simulate

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// jsonLine reads one JSON object and keeps the values of the wanted fields. A path with dots names a nested field; an
// index names an array element. If a field occurs twice, the last value counts.
type jsonLine struct {
	slots  map[string]int
	sizes  [64]bool // the lengths of wanted names: rejects most fields early
	values [][]byte // by slot: text of a string, number, true or false; otherwise nil

	line []byte
	at   int
	path []byte
}

// maxDepth bounds the nesting, and with it the stack.
const maxDepth = 64

// want returns the slot of a field and adds one if needed.
func (j *jsonLine) want(name string) int {
	slot, ok := j.slots[name]
	if !ok {
		if j.slots == nil {
			j.slots = map[string]int{}
		}
		slot = len(j.values)
		j.slots[name] = slot
		j.values = append(j.values, nil)
		j.sizes[min(len(name), len(j.sizes)-1)] = true
	}
	return slot
}

// parse reports whether the line is valid. For an invalid line it keeps the values before the fault.
func (j *jsonLine) parse(line []byte) bool {
	clear(j.values)
	j.line, j.at, j.path = line, 0, j.path[:0]
	if !j.object(maxDepth) {
		return false
	}
	j.space()
	return j.at == len(j.line)
}

// value reads any value, which is at the current path.
func (j *jsonLine) value(depth int) bool {
	if depth == 0 || j.at == len(j.line) {
		return false
	}
	switch j.line[j.at] {
	case '{':
		j.keep(nil)
		return j.object(depth)
	case '[':
		j.keep(nil)
		return j.array(depth)
	case '"':
		text, ok := j.text()
		if ok {
			j.keep(text)
		}
		return ok
	}
	return j.scalar()
}

// object reads an object that starts at the current position.
func (j *jsonLine) object(depth int) bool {
	j.at++
	if j.next('}') {
		return true
	}
	outer := len(j.path)
	for {
		j.space()
		name, ok := j.text()
		if !ok || !j.next(':') {
			return false
		}
		j.enter(outer, name)
		j.space()
		if !j.value(depth - 1) {
			return false
		}
		j.path = j.path[:outer]
		if j.next('}') {
			return true
		}
		if !j.next(',') {
			return false
		}
	}
}

// array reads an array that starts at the current position.
func (j *jsonLine) array(depth int) bool {
	j.at++
	if j.next(']') {
		return true
	}
	outer := len(j.path)
	for i := 0; ; i++ {
		var digits [20]byte
		j.enter(outer, strconv.AppendInt(digits[:0], int64(i), 10))
		j.space()
		if !j.value(depth - 1) {
			return false
		}
		j.path = j.path[:outer]
		if j.next(']') {
			return true
		}
		if !j.next(',') {
			return false
		}
	}
}

func (j *jsonLine) enter(outer int, name []byte) {
	if outer > 0 {
		j.path = append(j.path, '.')
	}
	j.path = append(j.path, name...)
}

// keep stores the value if the current path is wanted.
func (j *jsonLine) keep(value []byte) {
	if !j.sizes[min(len(j.path), len(j.sizes)-1)] {
		return
	}
	if slot, ok := j.slots[string(j.path)]; ok {
		j.values[slot] = value
	}
}

// text reads a string. It copies only a string with escapes.
func (j *jsonLine) text() ([]byte, bool) {
	if j.at == len(j.line) || j.line[j.at] != '"' {
		return nil, false
	}
	text, rest, whole := quoted(j.line[j.at:])
	if !whole {
		return nil, false
	}
	start := j.at
	j.at = len(j.line) - len(rest)
	if bytes.IndexByte(text, '\\') < 0 {
		return text, true
	}
	var unescaped string
	if err := json.Unmarshal(j.line[start:j.at], &unescaped); err != nil {
		return nil, false
	}
	return []byte(unescaped), true
}

// scalar reads a number, true, false or null. A scalar at the end of the line does not count, because the line may be
// cut there.
func (j *jsonLine) scalar() bool {
	start := j.at
	for j.at < len(j.line) && !ends(j.line[j.at]) {
		j.at++
	}
	text := j.line[start:j.at]
	switch {
	case j.at == len(j.line):
		return false
	case string(text) == "null":
		j.keep(nil)
	case string(text) == "true", string(text) == "false", isJSONNumber(text):
		j.keep(text)
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
func (j *jsonLine) next(c byte) bool {
	j.space()
	if j.at < len(j.line) && j.line[j.at] == c {
		j.at++
		return true
	}
	return false
}

func (j *jsonLine) space() {
	for j.at < len(j.line) && (j.line[j.at] == ' ' || j.line[j.at] == '\t' || j.line[j.at] == '\r') {
		j.at++
	}
}
