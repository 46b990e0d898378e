// Package accesslog reads the access logs of servers: one small [Entry] for each request, with its time and its fields by
// name.
//
// Ask a [Reader] for the fields before reading, and it finds out how each log is written:
//
//	logs, err := accesslog.NewReader(accesslog.Options{})
//	path := logs.Want("path")
//	err = logs.Read("access.log", file, func(e *accesslog.Entry) (why string, err error) {
//		value, ok := e.Value(path)
//		…
//	})
//
// The reader settles the format of a log after its first 1,000 lines, or after the lines that a pipe delivers in 2
// seconds. [Reader.Found] returns the format, and the variables that it takes for the time and for the client. It counts
// each line that it cannot read, with a reason.
//
// The types are not safe for concurrent use.
package accesslog

import (
	"fmt"
	"io"
	"net/netip"
	"time"
)

// Options say how logs are read. The zero value finds the format of each log, and believes no list of addresses.
type Options struct {
	// Format is the name of a format, or a pattern in the words of nginx's log_format. Default: each log shows its own.
	Format string
	// Client returns the address of a client: that of its connection, or one of the list that proxies have forwarded. By
	// default the connection is the client, and a line with nothing but a list of several addresses is rejected.
	Client func(peer, forwarded string) (netip.Addr, bool)
	// Since and Until bound the time. A request at Until is outside.
	Since, Until Bound
	// Done, once closed, ends every log as at its end.
	Done <-chan struct{}
}

// Reader reads logs, one after the other.
type Reader struct {
	Tally
	options Options
	told    []format // the formats to try
	wanted  []field
	clients clients
	found   []Found
	span    span
	keep    func(e *Entry) bool // or nil
}

// NewReader returns a Reader. Its error names an unknown format, or the fault of a pattern.
func NewReader(o Options) (*Reader, error) {
	told, err := formatsOf(o.Format)
	if err != nil {
		return nil, err
	}
	return &Reader{Tally: newTally(), options: o, told: told, clients: newClients(o.Client), span: newSpan(o.Since, o.Until)}, nil
}

// Want returns the slot of a field. Call it before reading. Every format may have these fields, under its own names: ip,
// client, method, path (without the query), query, uri, status, user, referer, agent, host, and header.NAME. Any other
// name is a variable of a pattern, a column, or a field of JSON lines, where dots name a nested field.
//
// The ip is the key that every front gives a client, and the client is its address, as the options choose it.
func (r *Reader) Want(name string) Slot {
	r.wanted = append(r.wanted, fieldOf(name))
	return Slot(len(r.wanted) - 1)
}

// WantKey is Want for a field of a key: an address in it is the key that every front gives a client, like the ip.
func (r *Reader) WantKey(name string) Slot {
	slot := r.Want(name)
	r.wanted[slot] = keyOf(name)
	if len(r.told) == 1 && r.told[0].named["client"] == name {
		r.wanted[slot].kind = addressKey
	}
	return slot
}

// Keep makes the Reader leave out an entry if keep returns false.
func (r *Reader) Keep(keep func(e *Entry) bool) { r.keep = keep }

// Read calls each with the entries of a log, plain or gzip, in its order. The entry is valid until each returns. If each
// returns a reason, the line counts as rejected. An error of each stops the reading.
func (r *Reader) Read(name string, log io.Reader, each func(e *Entry) (why string, err error)) error {
	if log == nil {
		return fmt.Errorf("read %s: the reader is nil", name)
	}
	stop := make(chan struct{})
	defer close(stop)
	reading := reading{Reader: r, name: name, each: each}
	reading.pieces, reading.read = pump(log, stop)
	if err := reading.all(); err != nil {
		return fmt.Errorf("read %s after line %d: %w", name, reading.number, err)
	}
	return nil
}

// The bounds of the lines read before the format of a log is settled.
const (
	sampleLines = 1000
	sampleBytes = 4 << 20
	sampleTime  = 2 * time.Second
)

// reading is the reading of one log.
type reading struct {
	*Reader
	name   string
	each   func(e *Entry) (why string, err error)
	pieces <-chan piece
	read   chan<- []byte // the texts of pieces that are read
	number int64         // number of the last line
	layout *layout
}

func (r *reading) all() error {
	held, err := r.sample()
	var lines [][]byte
	for _, p := range held {
		lines = append(lines, linesOf(p)...)
	}
	if len(lines) > 0 {
		r.layout = settle(lines[:min(len(lines), sampleLines)], r.told, r.Reader)
		r.found = append(r.found, r.layout.found(r.name))
	}
	for _, p := range held {
		if failed := r.piece(p); failed != nil {
			return failed
		}
	}
	for err == nil {
		var p piece
		if p, err = r.next(nil); err == nil {
			err = r.piece(p)
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// sample returns the beginning of the log, and the error that ended the log if it is short.
func (r *reading) sample() (held []piece, err error) {
	timer := time.NewTimer(sampleTime)
	defer timer.Stop()
	late := timer.C
	for lines, bytes := 0, 0; lines < sampleLines && bytes < sampleBytes; {
		p, err := r.next(late)
		if err == errLate && len(held) > 0 {
			return held, nil
		}
		if err == errLate {
			late = nil // the first line settles the format
			continue
		}
		if err != nil {
			return held, err
		}
		held = append(held, p)
		if lines, bytes = lines+len(linesOf(p)), bytes+len(p.text); late == nil {
			return held, nil
		}
	}
	return held, nil
}

// next returns the next piece, or io.EOF, errLate, or the error of the log.
func (r *reading) next(late <-chan time.Time) (piece, error) {
	select {
	case p, more := <-r.pieces:
		if !more {
			return p, io.EOF
		}
		return p, p.err
	case <-r.options.Done:
		return piece{}, io.EOF
	case <-late:
		return piece{}, errLate
	}
}

// piece reads the lines of a piece.
func (r *reading) piece(p piece) error {
	for text := p.text; len(text) > 0; {
		var line []byte
		line, text = cutLine(text)
		if err := r.line(line, p.long); err != nil {
			return err
		}
	}
	select {
	case r.read <- p.text:
	default:
	}
	return nil
}

func (r *reading) line(line []byte, long bool) error {
	r.number++
	if r.layout.isHeader(line, r.wanted) {
		return nil
	}
	r.lines++
	e, why := r.layout.entry(line, long)
	switch {
	case why != "":
	case !r.span.admits(e.Time), r.keep != nil && !r.keep(e):
		r.leftOut++
		return nil
	default:
		var err error
		if why, err = r.each(e); err != nil {
			r.lines-- // the line is left to another reading
			return err
		}
	}
	if why != "" {
		r.reject(Rejected{Log: r.name, Line: r.number, Reason: why}, line)
	}
	return nil
}
