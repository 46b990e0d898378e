package wire

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/stored"
)

// Reply reads the answer of the script. Missing values read as 0 and set short.
type Reply struct {
	Left  string
	Short bool
	Since float64 // us; when the server was first seen; -Inf without DenyNewServer
	Space *[6]int64
}

func (r *Reply) byte() byte {
	if len(r.Left) < 1 {
		r.Short = true
		return 0
	}
	b := r.Left[0]
	r.Left = r.Left[1:]
	return b
}

func (r *Reply) Double() float64 {
	if len(r.Left) < 8 {
		r.Left, r.Short = "", true
		return 0
	}
	var word uint64
	for i := range 8 {
		word |= uint64(r.Left[i]) << (8 * i)
	}
	r.Left = r.Left[8:]
	return math.Float64frombits(word)
}

// elsewhere begins the end of a reply whose next decision needs other boundaries of a quota. No answer begins with it.
const elsewhere = "\xff\xff\xff\xff\xff\xff\xff\xff"

// refusedBelow is, less the instant of a decision, the first answer again if that was a refusal that took nothing.
const refusedBelow = -1 << 52

// mostTries is how often a decision is asked again with other boundaries.
const mostTries = 2

// Elsewhere reads the end of a reply whose next decision, d, needs the boundaries of a quota around another instant. again
// is false if d has already been asked often enough. Then it has failed.
func (r *Reply) Elsewhere(d *Decision) (found, again bool) {
	if !strings.HasPrefix(r.Left, elsewhere) {
		return false, false
	}
	r.Left = r.Left[len(elsewhere):]
	d.elsewhere = int64(r.Double())
	if d.tries++; d.tries > mostTries {
		d.Err = fault.Uncounted(fault.Lost, fmt.Errorf("the server's clock moved over windows of %s with each of %d calls", d.keys(), d.tries))
		return true, false
	}
	return true, true
}

// Read reads the answer to a decision made at now.
func (r *Reply) Read(d *Decision, now int64, keys []string) {
	d.tries = 0
	if d.Identity != "" {
		first := r.Double()
		if math.IsInf(first, 1) {
			d.undone()
			return
		}
		now = int64(math.Floor(first))
		d.Again = first > float64(now)
		if first < refusedBelow {
			now, d.Again = int64(refusedBelow-first), true
		}
		if d.Again {
			d.Op = cmp.Or(d.First, d.Op)
		}
	}
	if d.Op != OpUndo {
		d.Now = now
	}
	if d.Op == OpUpTo && !d.tookTimes(int64(r.Double())) {
		r.Short = true
		d.Err = d.misread(true)
		return
	}
	if d.Op == OpBook {
		d.Due, d.Space = int64(r.Double()), r.Double()
	}
	flag := r.byte()
	if flag == flagUnreadable {
		d.Err = r.unreadable(keys)
	}
	if d.Op == OpReset || flag == flagUnreadable {
		return
	}
	d.Admitted = flag == FlagAdmitted
	held := d.Op != OpUndo && d.Op != OpRenew && d.Op != OpWithdraw && d.held(r.Since, now)
	if held {
		d.Admitted = false
	}
	wrote := d.Op == OpRecord || d.Op == OpTake && d.Admitted
	for i := range d.Parts {
		if !d.Parts[i].Joins {
			r.group(d, i)
			wrote = wrote && !d.Parts[i].Measure.Full
		}
	}
	if r.Short {
		d.Err = d.misread(true)
		return
	}
	if d.Op == OpBook {
		d.measureBooking(now, held)
	} else {
		for i := range d.Parts {
			d.Parts[i].measured(d, now, wrote, r.Space)
		}
	}
	if d.Again {
		d.keepAnswer()
		return
	}
	if held {
		d.delay(r.Since, now)
	}
	if d.Op != OpUndo && d.Op != OpRenew && d.Op < OpBook && !d.agrees() {
		d.Err = d.misread(false)
	}
}

// group reads the answer to part i and to the parts that share its value.
func (r *Reply) group(d *Decision, i int) {
	p := &d.Parts[i]
	if !p.Limit.Fixed {
		m := &p.Measure
		*m = enginekit.Measure{Bans: p.Limit.Kind == stored.KindBan}
		if d.Op != OpTake || !d.Admitted || m.Bans {
			m.Before, m.After = WaitOf(r.Double()), WaitOf(r.Double())
		}
		room := r.Double()
		m.Full = room < 0
		m.Remaining, m.ResetAfter = UnitsOf(max(room, 0)), WaitOf(r.Double())
		return
	}
	shared := d.shared(i)
	exists := r.byte() == stored.FormatByte
	if exists {
		r.byte() // the number of states
	}
	for j, n := i, shared; n > 0 && exists; j++ {
		if l := d.Parts[j].Limit; l.Fixed {
			r.skip(len(l.Identity))
			n--
		}
	}
	if exists {
		r.Double() // the expiry of the key
	}
	for ; shared > 0; i++ {
		if p := &d.Parts[i]; p.Limit.Fixed {
			if exists {
				r.state(p)
			} else {
				p.Stored = [6]float64{math.Inf(-1), 0, 1, 1, math.Inf(-1), math.Inf(-1)}
			}
			shared--
		}
	}
}

// state reads the numbers of a state.
func (r *Reply) state(p *Part) {
	s := &p.Stored
	if p.Limit.Kind > stored.KindLeaky {
		*s = [6]float64{r.Double(), r.Double(), r.Double(), 1, math.Inf(-1), math.Inf(-1)}
		return
	}
	s[0] = r.Double()
	s[1], s[2] = float64(r.uint32()), float64(r.uint32())
	s[3], s[4], s[5] = r.Double(), r.Double(), math.Inf(-1)
	if p.Limit.Kind == stored.KindLeaky {
		s[5] = r.Double()
	}
}

func (r *Reply) uint32() uint32 {
	if len(r.Left) < 4 {
		r.Left, r.Short = "", true
		return 0
	}
	word := uint32(r.Left[0]) | uint32(r.Left[1])<<8 | uint32(r.Left[2])<<16 | uint32(r.Left[3])<<24
	r.Left = r.Left[4:]
	return word
}

func (r *Reply) skip(n int) {
	if len(r.Left) < n {
		r.Left, r.Short = "", true
		return
	}
	r.Left = r.Left[n:]
}

// WaitOf converts a wait in us; an infinite one is Never.
func WaitOf(v float64) time.Duration {
	if v >= math.MaxInt64 {
		return weir.Never
	}
	return stored.Duration(int64(v))
}

func UnitsOf(v float64) int64 { return int64(v) }

// unreadable returns the error of a value that this version cannot read.
func (r *Reply) unreadable(keys []string) error {
	number := int(r.byte()) | int(r.byte())<<8
	first := r.byte()
	if r.Short || number < 1 || number > len(keys) {
		return &fault.Error{Reason: fault.Damaged, Counted: weir.CountedUnknown, Err: errReply}
	}
	key := keys[number-1]
	if first == foreignByte {
		return fault.Uncounted(fault.Damaged, fmt.Errorf("the value of key %q is of another type or another program: delete the key or use another prefix", key))
	}
	if format := first >> 4; format != stored.FormatVersion {
		return fault.Uncounted(fault.Damaged, fmt.Errorf("the value of key %q has format %d, or another program has written it, and this version reads format %d: see docs/howto/operate.md#upgrade", key, format, stored.FormatVersion))
	}
	return fault.Uncounted(fault.Damaged, fmt.Errorf("the value of key %q is damaged: delete the key", key))
}
