package accesslog

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// Entry is one request of a log. Its values are valid until the next one is read.
type Entry struct {
	Time  int64         // as the line stamps it, in nanoseconds since the Unix epoch
	Step  time.Duration // the finest difference of times that the log can tell, by its first lines
	Stamp Stamp         // the end of the request that Time is

	layout *layout
	who    client
	asked  bool // who is set
}

// Value returns the value of a field. It is not ok, and nil, if the line has no such field, and not ok, and a dash, if the
// server has written that the request had none.
func (e *Entry) Value(s Slot) (value []byte, ok bool) {
	b := &e.layout.slots[s]
	switch b.kind {
	case clientKey, clientAddress:
		return e.clientValue(b.kind)
	case addressKey:
		for i := range b.sources {
			if v := e.layout.values[b.sources[i].at]; v != nil {
				c := e.layout.clients.of(v, nil)
				return bytesOf(c.key), c.why == ""
			}
		}
		return nil, false
	}
	for i := range b.sources {
		v := e.layout.value(&b.sources[i])
		if v == nil {
			continue
		}
		if b.kind == maybeAddress {
			if c := e.layout.clients.of(v, nil); c.why == "" {
				return bytesOf(c.key), true
			}
		}
		return v, e.layout.format.exact || len(v) != 1 || v[0] != '-'
	}
	return nil, false
}

// value returns the value of a source, or nil. A query in a column of its own is joined to it.
func (l *layout) value(p *placed) []byte {
	v := l.values[p.at]
	if v != nil && p.take != nil {
		v = p.take(v)
	}
	if v == nil || p.query < 0 {
		return v
	}
	query := l.values[p.query]
	if len(query) == 0 || string(query) == "-" || bytes.IndexByte(v, '?') >= 0 {
		return v
	}
	l.target = append(append(append(l.target[:0], v...), '?'), query...)
	return l.target
}

// Twice reports whether the line is of objects, and a wanted field occurs in it more than once: Value has the last one.
func (e *Entry) Twice() bool {
	o, ok := e.layout.split.(*object)
	return ok && o.twice
}

// Why completes "the line …" with the reason why a field has no value.
func (e *Entry) Why(s Slot) string {
	b := &e.layout.slots[s]
	switch {
	case e.layout.broken:
		return whyNotJSON
	case b.kind == clientKey || b.kind == clientAddress:
		if e.client(); e.who.why != "" {
			return e.who.why
		}
	case b.kind == addressKey:
		for i := range b.sources {
			if v := e.layout.values[b.sources[i].at]; v != nil {
				return e.layout.clients.of(v, nil).why
			}
		}
	}
	return b.missing
}

// Took returns how long the request took, if the line says so.
func (e *Entry) Took() (took time.Duration, ok bool) {
	l := e.layout
	if l.chosen.tookAt < 0 || l.values[l.chosen.tookAt] == nil {
		return 0, false
	}
	text := bytes.TrimSuffix(l.values[l.chosen.tookAt], []byte("s")) // as protocol buffers write a duration in JSON
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(n >= 0) || n*float64(l.format.unit) > float64(1<<62) {
		return 0, false
	}
	return time.Duration(n * float64(l.format.unit)), true
}

func (e *Entry) clientValue(k kind) ([]byte, bool) {
	if peer := e.layout.plainPeer(); peer != nil {
		return peer, true
	}
	e.client()
	if k == clientAddress {
		return bytesOf(e.who.address), e.who.why == ""
	}
	return bytesOf(e.who.key), e.who.why == ""
}

func (e *Entry) client() {
	if !e.asked {
		e.asked, e.who = true, e.layout.client()
	}
}

func bytesOf(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

// missing is the reason to reject a line without a field.
func missing(name string) string { return fmt.Sprintf(whyNoField, name) }
