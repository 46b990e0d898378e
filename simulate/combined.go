package simulate

import (
	"bytes"
)

// combined reads lines of the common and the combined format, and of the combined format with a leading virtual host:
//
//	ip ident user [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" 200 5 "referer" "agent"
//
// A line must have the time, and a client if a field before the time is wanted. From a line that is cut short, combined
// reads the fields before the cut.
type combined struct {
	values [columnAgent + 1][]byte // by column, as in the line, except that ip is the key of the client; nil if unreadable
	client []byte
}

// parse reads the time, and the values from the column first to the column last.
func (c *combined) parse(line []byte, first, last column) (t int64, why string) {
	t, open, end, why := c.findTime(line)
	if why == "" && first <= columnUser {
		why = c.head(line[:open])
	}
	if why != "" {
		return 0, why
	}
	if last > columnUser {
		clear(c.values[columnMethod:])
		c.tail(line[end:], last)
	}
	return t, ""
}

// findTime looks for a time in brackets before the first quote. Text after the quote comes from the client.
func (c *combined) findTime(line []byte) (t int64, open, end int, why string) {
	why = whyNoTime
	for at := 0; ; at = open + 1 {
		i := bytes.IndexByte(line[at:], '[')
		if i < 0 || bytes.IndexByte(line[at:at+i], '"') >= 0 {
			return 0, 0, 0, why
		}
		open = at + i
		var size int
		t, size, why = bracketed(line[open:])
		if why == "" {
			return t, open, open + size, ""
		}
	}
}

// head reads the fields before the time. A line with anything else before the client is not understood, and neither is
// one with a second address, because one of the two may be that of a proxy or of the machine that wrote the log.
func (c *combined) head(head []byte) (why string) {
	if !bytes.HasSuffix(head, []byte(" ")) {
		return whyNoClient
	}
	c.values[columnHost], c.values[columnUser] = nil, nil
	client, rest := word(head)
	if isHostName(client) {
		c.values[columnHost] = withoutPort(client)
		client, rest = word(rest)
	}
	switch c.client, why = appendClient(c.client[:0], client); {
	case why == whyNotClient:
		return whyNoClient
	case why == "" && namesAddress(rest):
		why = whyClients
	}
	c.values[columnIP] = c.client
	if _, user := word(bytes.Trim(rest, " ")); len(user) > 0 {
		c.values[columnUser] = bytes.TrimLeft(user, " ")
	}
	return why
}

// tail reads the fields after the time. It stops at the first incomplete value and after the column last.
func (c *combined) tail(rest []byte, last column) {
	line, rest, whole := quoted(rest)
	method, uri := splitRequest(line, !whole)
	c.values[columnMethod] = method
	if uri != nil {
		c.values[columnPath] = columnPath.ofTarget(uri)
		c.values[columnQuery] = columnQuery.ofTarget(uri)
		c.values[columnURI] = uri
	}
	if !whole || last < columnStatus {
		return
	}
	status, rest := word(bytes.TrimLeft(rest, " "))
	if isStatus(status) {
		c.values[columnStatus] = status
	}
	_, rest = word(rest) // the size
	for p := columnReferer; p <= last; p++ {
		var value []byte
		if value, rest, whole = quoted(rest); !whole {
			return
		}
		c.values[p] = value
	}
}

// word splits b at the first space.
func word(b []byte) (first, rest []byte) {
	if i := bytes.IndexByte(b, ' '); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

// quoted returns the text between two quotes as it stands: a backslash keeps the next quote from ending it. The text
// is not whole if the second quote is missing.
func quoted(b []byte) (text, rest []byte, whole bool) {
	b = bytes.TrimLeft(b, " ")
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	b = b[1:]
	for at := 0; ; at++ {
		i := bytes.IndexByte(b[at:], '"')
		if i < 0 {
			return b, nil, false
		}
		at += i
		if !escaped(b[:at]) {
			return b[:at], b[at+1:], true
		}
	}
}

// escaped reports whether b ends in an odd number of backslashes.
func escaped(b []byte) bool {
	odd := false
	for i := len(b) - 1; i >= 0 && b[i] == '\\'; i-- {
		odd = !odd
	}
	return odd
}

// splitRequest returns the method and the target of a request line. In a line that was cut, a field counts only if a
// space follows it.
func splitRequest(line []byte, cut bool) (method, uri []byte) {
	i := bytes.IndexByte(line, ' ')
	if i <= 0 {
		return nil, nil
	}
	method, uri = line[:i], line[i+1:]
	end := bytes.LastIndexByte(uri, ' ')
	if cut {
		end = bytes.IndexByte(uri, ' ')
	}
	switch {
	case cut && end < 0:
		return method, nil
	case cut, end >= 0 && bytes.HasPrefix(uri[end+1:], []byte("HTTP/")):
		uri = uri[:end]
	}
	return method, uri
}

// from returns the column of a value of the given kind, or nil if the value has none.
func (p column) from(value []byte, k kind) []byte {
	switch k {
	case request:
		method, uri := splitRequest(value, false)
		if p == columnMethod {
			return method
		}
		return p.ofTarget(uri)
	case target:
		return p.ofTarget(value)
	}
	return value
}

// ofTarget returns the path, the query, or the whole of a request target.
func (p column) ofTarget(uri []byte) []byte {
	if uri == nil || p == columnURI {
		return uri
	}
	path, query, found := bytes.Cut(uri, []byte("?"))
	switch {
	case p == columnPath:
		return path
	case found:
		return query
	}
	return none
}

// none is the empty value, as distinct from a missing one.
var none = []byte{}

func isStatus(b []byte) bool {
	return len(b) == 3 && isDigit(b[0]) && isDigit(b[1]) && isDigit(b[2])
}

func withoutPort(host []byte) []byte {
	if i := bytes.LastIndexByte(host, ':'); i >= 0 {
		return host[:i]
	}
	return host
}
