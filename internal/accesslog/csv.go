package accesslog

import "bytes"

// columns reads lines of values between separators. With quotes, a quoted value may hold separators, and its own quotes
// are doubled.
type columns struct {
	names     []string
	separator byte
	quotes    bool
}

// newColumns reads the line that names the columns, in the separator that makes the most of them.
func newColumns(header []byte) *columns {
	c := &columns{separator: ',', quotes: true}
	for _, separator := range []byte(";\t") {
		if bytes.Count(header, []byte{separator}) > bytes.Count(header, []byte{c.separator}) {
			c.separator = separator
		}
	}
	values := make([][]byte, 1+bytes.Count(header, []byte{c.separator}))
	c.split(header, values)
	for _, name := range values {
		c.names = append(c.names, string(bytes.TrimSpace(name)))
	}
	return c
}

// split reads the values of a line, which is whole if it has a value for each column and no more.
func (c *columns) split(line []byte, values [][]byte) fit {
	clear(values)
	for i := range values {
		value, rest, more := c.value(line)
		if value == nil || !more && i < len(values)-1 {
			return fit{found: i}
		}
		values[i], line = value, rest
		if !more && i == len(values)-1 {
			return fit{len(values), true, true}
		}
	}
	return fit{found: len(values)}
}

// value returns the first value, the text behind its separator, and whether there is one.
func (c *columns) value(line []byte) (value, rest []byte, more bool) {
	if !c.quotes || len(line) == 0 || line[0] != '"' {
		value, rest, more = bytes.Cut(line, []byte{c.separator})
		if value == nil {
			value = none
		}
		return value, rest, more
	}
	for at := 1; ; at++ {
		i := bytes.IndexByte(line[at:], '"')
		if i < 0 {
			return nil, nil, false
		}
		if at += i; at+1 < len(line) && line[at+1] == '"' {
			at++
			continue
		}
		value, rest = line[1:at], line[at+1:]
		if bytes.IndexByte(value, '"') >= 0 {
			value = bytes.ReplaceAll(value, []byte(`""`), []byte(`"`))
		}
		if len(rest) > 0 && rest[0] != c.separator {
			return nil, nil, false
		}
		return value, rest[min(1, len(rest)):], len(rest) > 0
	}
}

// none is the empty value, as distinct from a missing one.
var none = []byte{}
