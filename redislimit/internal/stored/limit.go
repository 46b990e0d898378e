// Package stored has the form of limits in Redis: their numbers, the names of their keys, and the work that
// reading them costs. Times are in microseconds.
package stored

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// The bounds within which an engine is exact. redislimit describes them.
const (
	MostCount    = 1_000_000_000
	MostLog      = 1 << 15
	MostSlots    = 1 << 11
	DefaultLease = 30 * time.Second
	Tick         = time.Microsecond
)

const (
	MostAhead = 1 << 51 // us; 71 years
	MostUnits = 1 << 53
)

// kind numbers the functions of the script.
type kind uint8

const (
	KindNone kind = iota // a limit without a state; the script never sees it
	kindBucket
	KindLeaky
	KindWindow
	KindCycle
	KindQuota
	KindFirst
	KindLog
	KindSlots
	KindBan
)

// form is the layout of states of fixed size.
type form struct {
	Numbers string // as string.pack has them
	Count   int    // how many they are; the script knows the form by this
	Bytes   int
}

func (k kind) form() form {
	switch k {
	case kindBucket:
		return form{"dI4I4dd", 5, 32}
	case KindLeaky:
		return form{"dI4I4ddd", 6, 40}
	}
	return form{"ddd", 3, 24}
}

// Limit is a weir.Limit in the form of the script, with all times in us.
type Limit struct {
	Kind     kind
	Fixed    bool // the states have a fixed size, and those of one rule and key share one value; the script replies with them, and otherwise with waits and room
	Form     form
	Capacity int64
	Letter   string // the name of the algorithm
	Identity string // name of a state of fixed size in its value
	State    string // the name of a key's value
	Denied   bool   // a refusal may be written
	Weight   int    // see work

	Ban       Ban
	Leaseless bool // slots with the default lease

	Period, Origin, Gap int64
	Weighs, Gate        bool

	Den, Unit int64 // for a bucket: a unit takes unit/den us
	most      int64 // the most units that one call can record on a bucket
	Fill      Span  // time of the burst
	Early     Span  // for a leaky bucket: how much earlier a release is than TAT after it

	Functions enginekit.Functions // in ticks
	quota     *quota              // nil unless the limit is one
}

// Ban has the numbers of a ban: how many strikes within a time begin it, and how long it lasts.
type Ban struct{ After, Within, Shortest, Longest int64 }

// Span is a time in whole us and 1/den us.
type Span struct{ Whole, Rest float64 }

func NewLimit(l weir.Limit) (Limit, error) {
	b := bounds{text: l.String()}
	functions, err := enginekit.FunctionsOf(l, Tick)
	if err == nil && weir.Describe(l).Stateless {
		return stateless(functions), nil
	}
	made, letter := Limit{}, ""
	switch l := l.(type) {
	case weir.TokenBucket:
		letter = "t"
		burst := l.Burst
		if burst == 0 {
			burst = l.Rate.Count
		}
		made = newBucket(&b, l.Rate, burst, "burst")
	case weir.LeakyBucket:
		letter = "l"
		made = newBucket(&b, l.Rate, l.Queue+1, "queue")
		made.Kind = KindLeaky
		made.Early, _ = made.Takes(min(l.NoDelay, l.Queue) + 1)
		b.count("nodelay", l.NoDelay, MostCount)
	case weir.FixedWindow:
		letter = "f"
		made = newWindow(&b, l.Rate, KindWindow, MostCount)
	case weir.FirstWindow:
		letter = "i"
		made = newWindow(&b, l.Rate, KindFirst, MostCount)
	case weir.SlidingWindow:
		letter = "w"
		made = newWindow(&b, l.Rate, KindWindow, MostCount)
		made.Weighs = true
	case weir.Cycle:
		letter = "c"
		made = newWindow(&b, l.Rate, KindCycle, MostCount)
		made.Origin = floorMod(ticks(l.Origin), made.Period)
	case weir.Quota:
		letter = "q"
		longest := weir.Describe(l).Reset
		made = Limit{Kind: KindQuota, Capacity: l.Count, Period: ticks(longest), quota: &quota{functions: functions}}
	case weir.SlidingLog:
		letter = "s"
		made = newWindow(&b, l.Rate, KindLog, MostLog)
		made.Gap = ticks(l.Gap)
		made.Denied = l.CountDenied
	case weir.RateGate:
		letter = "g"
		made = newWindow(&b, l.Rate, KindLog, MostLog)
		made.Gate = true
	case weir.Concurrency:
		letter = "n"
		b.count("slots", l.Slots, MostSlots)
		made = Limit{Kind: KindSlots, Capacity: l.Slots, Period: ticks(cmp.Or(l.Lease, DefaultLease)), Leaseless: l.Lease == 0}
	case weir.Ban:
		letter = "b"
		made = Limit{Kind: KindBan, Capacity: functions.Capacity(), Period: max(ticks(l.Within), 1)}
		made.Ban = Ban{l.After, made.Period, ticks(l.For), ticks(max(l.For, l.UpTo))}
	default:
		b.refuse("value", "is a limit that Redis cannot hold")
	}
	made.Letter, made.Functions, made.Fixed, made.Form = letter, functions, made.Kind < KindLog, made.Kind.form()
	return made, errors.Join(append(b.problems, err)...)
}

func newWindow(b *bounds, r weir.Rate, k kind, most int64) Limit {
	b.count("rate", r.Count, most)
	return Limit{Kind: k, Capacity: r.Count, Period: max(ticks(r.Period), 1)}
}

func newBucket(b *bounds, r weir.Rate, burst int64, name string) Limit {
	made := newWindow(b, r, kindBucket, MostCount)
	b.count(name, burst, MostCount)
	common := gcd(r.Count, made.Period)
	made.Capacity, made.Den, made.Unit = burst, r.Count/common, made.Period/common
	var ok bool
	if made.Fill, ok = made.Takes(burst); !ok {
		b.refuse(name, fmt.Sprintf("%d takes more than 71 years to fill", burst))
	}
	hi, lo := bits.Mul64(MostAhead, uint64(made.Den))
	made.most = MostUnits
	if hi < uint64(made.Unit) {
		units, _ := bits.Div64(hi, lo, uint64(made.Unit))
		made.most = max(int64(min(units, MostUnits)), burst+1)
	}
	return made
}

// GapLeft returns the rest of a log's gap, given the time until its newest entry leaves.
func (l *Limit) GapLeft(reset time.Duration) time.Duration {
	if l.Gap == 0 {
		return 0
	}
	return max(reset-Duration(l.Period-l.Gap), 0)
}

// Takes returns the time of n units of a bucket, or mostAhead and false if it is longer.
func (l *Limit) Takes(n int64) (Span, bool) {
	hi, lo := bits.Mul64(uint64(n), uint64(l.Unit))
	if hi >= uint64(l.Den) {
		return Span{Whole: MostAhead}, false
	}
	whole, rest := bits.Div64(hi, lo, uint64(l.Den))
	if whole > MostAhead || whole == MostAhead && rest > 0 {
		return Span{Whole: MostAhead}, false
	}
	return Span{float64(whole), float64(rest)}, true
}

// Spent returns the time until an empty state is fresh again.
func (l *Limit) Spent() float64 {
	switch {
	case l.Kind == KindBan: // a lost one admits nothing that its limits refuse
		return 0
	case l.Kind <= KindLeaky && l.Fill.Rest > 0:
		return l.Fill.Whole + 1
	case l.Kind <= KindLeaky:
		return l.Fill.Whole
	case l.Weighs:
		return 2 * float64(l.Period)
	}
	return float64(l.Period)
}

// bounds collects errors of values out of bounds.
type bounds struct {
	text     string
	problems []error
}

func (b *bounds) refuse(field, reason string) {
	b.problems = append(b.problems, &weir.LimitError{Limit: b.text, Field: field, Code: weir.CodeEngine, Reason: reason + " (Redis)"})
}

func (b *bounds) count(field string, value, most int64) {
	if value > most {
		b.refuse(field, fmt.Sprintf("%d is above %d", value, most))
	}
}

// ticks converts a duration to us. FunctionsOf refuses durations that are not whole.
func ticks(d time.Duration) int64 { return int64(d / Tick) }

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func floorMod(a, b int64) int64 { return (a%b + b) % b }

func FloorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }

// stateless returns a limit without a state.
func stateless(f enginekit.Functions) Limit {
	return Limit{Kind: KindNone, Fixed: true, Capacity: f.Capacity(), Functions: f}
}

// Duration converts us to a duration, which saturates.
func Duration(micros int64) time.Duration {
	if micros > math.MaxInt64/int64(time.Microsecond) {
		return weir.Never
	}
	return time.Duration(micros) * time.Microsecond
}
