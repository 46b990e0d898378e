package redislimit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// reply reads the answer of the script. Missing values read as 0 and set short.
type reply struct {
	left    string
	short   bool
	earlier bool    // an earlier version holds a state
	since   float64 // us; when the server was first seen; -Inf without DenyNewServer
	space   *[6]int64
}

func (r *reply) byte() byte {
	if len(r.left) < 1 {
		r.short = true
		return 0
	}
	b := r.left[0]
	r.left = r.left[1:]
	return b
}

func (r *reply) double() float64 {
	if len(r.left) < 8 {
		r.left, r.short = "", true
		return 0
	}
	var word uint64
	for i := range 8 {
		word |= uint64(r.left[i]) << (8 * i)
	}
	r.left = r.left[8:]
	return math.Float64frombits(word)
}

// read reads the answer to a decision made at now.
func (r *reply) read(d *decision, now int64, keys []string) {
	if d.identity != "" {
		first := r.double()
		if math.IsInf(first, 1) {
			d.undone()
			return
		}
		now = int64(math.Floor(first))
		if d.again = first > float64(now); d.again {
			d.op = cmp.Or(d.first, d.op)
		}
	}
	if d.op != opUndo {
		d.now = now
	}
	if d.op == opUpTo && !d.tookTimes(int64(r.double())) {
		r.short = true
		d.err = d.misread(true)
		return
	}
	barred := d.line != nil && r.turn(d.line)
	if d.op == opBook {
		d.due, d.space = int64(r.double()), r.double()
	}
	flag := r.byte()
	if flag == flagUnreadable {
		d.err = r.unreadable(d, keys)
		r.lined(d, now)
	}
	if d.op == opReset || flag == flagUnreadable {
		return
	}
	d.admitted = flag == flagAdmitted
	held := d.op != opUndo && d.op != opRenew && d.op != opWithdraw && d.held(r.since, now)
	if held {
		d.admitted = false
	}
	wrote := d.op == opRecord || d.op == opTake && d.admitted
	for i := range d.parts {
		if !d.parts[i].joins {
			r.group(d, i)
			wrote = wrote && !d.parts[i].measure.Full
		}
	}
	r.lined(d, now)
	if r.short {
		d.err = d.misread(true)
		return
	}
	if d.op == opBook {
		d.measureBooking(now, held)
	} else {
		for i := range d.parts {
			d.parts[i].measured(d, now, wrote, r.space)
		}
	}
	if d.again {
		d.keepAnswer()
		return
	}
	if held {
		d.hold(r.since, now)
	}
	if !barred && d.op != opUndo && d.op != opRenew && d.op < opBook && !d.agrees() {
		d.err = d.misread(false)
	}
}

// lined reads what the answer to a decision of a line ends with.
func (r *reply) lined(d *decision, now int64) {
	switch {
	case d.booking != nil:
		if d.booking.retry = r.double(); !d.admitted {
			d.longest = min(d.longest, d.due-now-1) // an older caller may have been before it
		}
	case d.line != nil && d.line.last != nil:
		r.news(d.line.last)
	}
}

// group reads the answer to part i and to the parts that share its value.
func (r *reply) group(d *decision, i int) {
	p := &d.parts[i]
	if p.limit.kind.measured() {
		m := &p.measure
		*m = enginekit.Measure{}
		if d.op != opTake || !d.admitted {
			m.Before, m.After = wait(r.double()), wait(r.double())
		}
		room := r.double()
		m.Full = room < 0
		m.Remaining, m.ResetAfter = units(max(room, 0)), wait(r.double())
		return
	}
	shared := d.shared(i)
	exists := r.byte() == formatByte
	if exists {
		r.byte() // the number of states
	}
	for j, n := i, shared; n > 0 && exists; j++ {
		if l := d.parts[j].limit; l.kind.fixed() {
			r.skip(len(l.identity))
			n--
		}
	}
	if exists {
		r.double() // the expiry of the key
	}
	for ; shared > 0; i++ {
		if p := &d.parts[i]; p.limit.kind.fixed() {
			if exists {
				r.state(p)
			} else {
				p.stored = [6]float64{math.Inf(-1), 0, 1, 1, math.Inf(-1), math.Inf(-1)}
			}
			shared--
		}
	}
}

// state reads the numbers of a state.
func (r *reply) state(p *part) {
	s := &p.stored
	if p.limit.kind > kindLeaky {
		*s = [6]float64{r.double(), r.double(), r.double(), 1, math.Inf(-1), math.Inf(-1)}
		return
	}
	s[0] = r.double()
	s[1], s[2] = float64(r.uint32()), float64(r.uint32())
	s[3], s[4], s[5] = r.double(), r.double(), math.Inf(-1)
	if p.limit.kind == kindLeaky {
		s[5] = r.double()
	}
}

func (r *reply) uint32() uint32 {
	if len(r.left) < 4 {
		r.left, r.short = "", true
		return 0
	}
	word := uint32(r.left[0]) | uint32(r.left[1])<<8 | uint32(r.left[2])<<16 | uint32(r.left[3])<<24
	r.left = r.left[4:]
	return word
}

func (r *reply) skip(n int) {
	if len(r.left) < n {
		r.left, r.short = "", true
		return
	}
	r.left = r.left[n:]
}

// wait converts a wait in us; an infinite one is Never.
func wait(v float64) time.Duration {
	if v >= math.MaxInt64 {
		return weir.Never
	}
	return duration(int64(v))
}

func units(v float64) int64 { return int64(v) }

var errReply = errors.New("the script's reply does not match the call")

// misread returns the error of an answer whose flag alone could be read. The script writes an admitted take, every
// record, and an attempt that a log counts though it refuses it.
func (d *decision) misread(short bool) error {
	counted := weir.CountedNo
	switch {
	case short:
		counted = weir.CountedUnknown
	case d.op == opRecord, d.op == opTake && d.admitted, d.op == opTake && d.parts[0].limit.denied:
		counted = weir.CountedYes
	}
	return &Error{Reason: Damaged, Counted: counted, Err: fmt.Errorf("%w: is the value of %s damaged?", errReply, d.keys())}
}

// keys returns the keys of the decision, as an error names them.
func (d *decision) keys() string {
	var keys []string
	for i := range d.parts {
		if p := &d.parts[i]; !p.joins {
			keys = append(keys, p.key)
		}
	}
	return strings.Join(keys, " or of ")
}

// unreadable returns the error of a value that this version cannot read.
func (r *reply) unreadable(d *decision, keys []string) error {
	number := int(r.byte()) | int(r.byte())<<8
	place, first := int(r.byte()), r.byte()
	if r.short || number < 1 || number > len(keys) {
		return &Error{Reason: Damaged, Counted: weir.CountedUnknown, Err: errReply}
	}
	key := keys[number-1]
	if i := slices.IndexFunc(d.parts, func(p part) bool { return p.key == key }); place > 0 && i >= 0 {
		r.earlier = true
		return uncounted(Damaged, d.parts[i].isEarlier(place, first))
	}
	if first == foreignByte {
		return uncounted(Damaged, fmt.Errorf("the value of key %q is of another type or another program: delete the key or use another prefix", key))
	}
	if format := first >> 4; format != formatVersion {
		return uncounted(Damaged, fmt.Errorf("the value of key %q has format %d, or another program has written it, and this version reads format %d: see docs/upgrading.md", key, format, formatVersion))
	}
	return uncounted(Damaged, fmt.Errorf("the value of key %q is damaged: delete the key", key))
}
