package accesslog

import (
	"bytes"
	"encoding/json"
	"strings"
)

// entry reads a line, or returns the reason why it cannot. The entry is valid until the next call.
func (l *layout) entry(line []byte, long bool) (e *Entry, why string) {
	if long || len(line) > maxLine {
		return nil, whyLong
	}
	line = l.trim(line)
	if len(line) == 0 {
		return nil, whyBlank
	}
	if line, why = l.unwrap(line); why != "" {
		return nil, why
	}
	fits, at, why := l.read(line)
	l.broken = !fits.whole && l.format.shape == byJSON
	switch {
	case why == "":
	case l.broken:
		return nil, whyNotJSON
	default:
		return nil, why
	}
	l.last = Entry{Time: at.at, Step: l.step, Stamp: l.format.stamp, layout: l}
	return &l.last, ""
}

// trim returns a line without the spaces before it, unless these separate columns.
func (l *layout) trim(line []byte) []byte {
	if c, ok := l.split.(*columns); ok && c.separator == '\t' {
		return line
	}
	return bytes.TrimLeft(line, " \t")
}

// read reads the values of a line, and the time among them. A line of columns with a value too many or too few has values in
// other columns than theirs, and a client may have chosen which.
func (l *layout) read(line []byte) (fits fit, at stamp, why string) {
	fits = l.split.split(line, l.values)
	switch {
	case l.format.shape == byFields && len(l.names) == 0:
		return fits, at, whyNoFields
	case !fits.whole && l.inColumns():
		return fits, at, whyColumns
	}
	at, why = l.stamp()
	return fits, at, why
}

// unwrap returns the server's text in a line that a collector has wrapped.
func (l *layout) unwrap(line []byte) (inner []byte, why string) {
	if l.unwrapper == nil {
		return line, ""
	}
	l.unwrapper.split(line, l.wrapping)
	if inner = l.wrapping[l.lineAt]; inner == nil {
		return nil, l.unwrapped
	}
	return bytes.TrimRight(inner, "\r\n"), ""
}

// stamp returns the time of the last line.
func (l *layout) stamp() (stamp, string) {
	if l.chosen.timeAt < 0 || l.values[l.chosen.timeAt] == nil {
		return stamp{}, whyNoTime
	}
	text := l.values[l.chosen.timeAt]
	if l.chosen.clockAt >= 0 {
		text = l.join(text, l.values[l.chosen.clockAt])
	}
	if l.stamped.name == l.chosen.time && string(l.stamped.text) == string(text) {
		return l.stamped.stamp, ""
	}
	at, why := parseTimeOf(l.chosen.time, text)
	if why == "" {
		l.stamped = stamped{l.chosen.time, append(l.stamped.text[:0], text...), at}
	}
	return at, why
}

// join returns a date and a clock as one text.
func (l *layout) join(date, clock []byte) []byte {
	l.moment = append(append(append(l.moment[:0], date...), ' '), clock...)
	return l.moment
}

// plainPeer returns the address of the client if that is an IPv4 address without a port, which is its own key.
func (l *layout) plainPeer() []byte {
	if l.clients.choose != nil || l.format.front {
		return nil
	}
	if peer := l.peer(); isIPv4(peer) && !l.ambiguous() {
		return peer
	}
	return nil
}

// client returns the client of the last line.
func (l *layout) client() client {
	peer, forwarded := l.peer(), l.forwarded()
	if peer == nil {
		return client{why: missing("ip")}
	}
	if l.chosen.client == clientPort {
		peer = beforeLastColon(peer)
	}
	if l.clients.choose == nil && l.format.front && len(forwarded) > 0 {
		return client{why: whyClients}
	}
	found := l.clients.of(peer, forwarded)
	if found.why == "" && l.ambiguous() {
		return client{why: whyClients}
	}
	return found
}

// peer returns the address of the client of the last line, or nil.
func (l *layout) peer() []byte {
	for _, at := range l.chosen.peerAt {
		if address := l.values[at]; address != nil {
			return address
		}
	}
	return nil
}

// forwarded returns the list of addresses that proxies have forwarded with the last line, empty without one.
func (l *layout) forwarded() []byte {
	var lists []string
	if at := l.chosen.linesAt; at >= 0 && l.clients.choose != nil && l.values[at] != nil && json.Unmarshal(l.values[at], &lists) == nil && len(lists) > 1 {
		return []byte(strings.Join(lists, ","))
	}
	for _, at := range l.chosen.forwardedAt {
		if list := l.values[at]; len(list) > 0 && string(list) != "-" {
			return list
		}
	}
	return none
}

// ambiguous reports whether a line names an address where the name of a user belongs: a line in a format that is like the
// one found.
func (l *layout) ambiguous() bool {
	return !l.format.told && l.chosen.userAt >= 0 && len(l.values[l.chosen.userAt]) > 1 && namesAddress(l.values[l.chosen.userAt])
}

// isIPv4 reports whether b is an IPv4 address without a port, which is its own key.
func isIPv4(b []byte) bool {
	dots, value, digits := 0, 0, 0
	for _, c := range b {
		switch {
		case c == '.' && digits > 0:
			dots, value, digits = dots+1, 0, 0
		case isDigit(c) && (digits == 0 || value > 0):
			if value, digits = 10*value+int(c-'0'), digits+1; value > 255 {
				return false
			}
		default:
			return false
		}
	}
	return dots == 3 && digits > 0
}
