package wire

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/weirflow/weir/redislimit/internal/stored"
)

// line appends what comes before a decision that concerns lines. It reports whether this one does.
func (b *Batch) line(d *Decision) bool {
	switch {
	case d.Booking != nil:
		b.books(d.Booking)
		return true
	case d.Line != nil:
		b.calls(d.Line)
		return true
	case d.Op != OpReset && d.Op != OpUndo && d.Op != OpRecord:
		return false
	}
	freed := d.freed()
	if len(freed) == 0 {
		return false
	}
	b.lines("frees", len(freed))
	for i := range freed {
		b.index16(freed[i].Parts[0].Line())
		b.group(&freed[i], 0)
	}
	return true
}

func (b *Batch) lines(what string, count int) {
	b.occurs(withLines)
	b.word(what, count)
}

func (b *Batch) index16(key string) {
	b.Args = binary.LittleEndian.AppendUint16(b.Args, uint16(b.number(key)))
}

func (b *Batch) calls(q *LineCaller) {
	if h := q.Header; h != nil {
		b.lines("asks", len(h.Keys))
		b.Args = append(append(b.Args, h.Process...), byte(h.Hears))
		b.Args = stored.Doubles(b.Args, micros(h.Grace), float64(max(h.Callers, 1)))
		for i := range h.Keys {
			k := &h.Keys[i]
			b.index16(k.Key)
			b.Args = binary.LittleEndian.AppendUint64(b.Args, k.Token)
			b.Args = stored.Doubles(b.Args, age(k.Since), float64(k.Slots.Cost), float64(k.Want))
			b.Args = binary.LittleEndian.AppendUint64(b.Args, k.Keep.Lease)
			b.Args = stored.Doubles(b.Args, age(k.Keep.Since), float64(k.Keep.Units))
			b.group(&k.Peek, 0)
		}
	}
	if q.Nobody {
		return
	}
	b.lines("calls", len(q.Slots))
	b.Args = stored.Doubles(binary.LittleEndian.AppendUint64(b.Args, q.Lease), age(q.Since))
	flags := byte(0)
	if q.Again {
		flags = 1
	}
	if q.Stays {
		flags += 2
	}
	b.Args = append(b.Args, flags, byte(len(q.Rates)))
	for _, r := range q.Rates {
		b.index16(r.Key)
		b.Args = stored.Doubles(append(b.Args, byte(r.At+1)), micros(r.Unit))
	}
	for _, s := range q.Slots {
		b.Args = stored.Doubles(append(b.Args, byte(s.At+1)), float64(s.Cost))
	}
}

func (b *Batch) books(q *LineBooking) {
	b.lines("books", 0)
	b.Args = append(b.Args, q.Process...)
	b.index16(q.Key)
	b.Args = stored.Doubles(b.Args, age(q.Since), micros(q.Unit), micros(q.Way))
}

func micros(d time.Duration) float64 { return math.Ceil(float64(d) / float64(time.Microsecond)) }

// age returns the time since an instant in us; 0 for none.
func age(since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(micros(time.Since(since)), 0)
}
