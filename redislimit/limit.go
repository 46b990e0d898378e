package redislimit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// The bounds within which this engine is exact. Check and all operations refuse limits outside them with a
// *weir.LimitError.
const (
	// MaxCount is the largest count, burst, queue or number of slots.
	MaxCount = 1_000_000_000
	// MaxLog is the largest count of a SlidingLog or a RateGate. Their states grow with it, and no call of the script may
	// delay the server's other callers for long. docs/redis.md gives the sizes and times.
	MaxLog = 1 << 15
	// MaxSlots is the largest number of slots of a Concurrency, for the same reason.
	MaxSlots = 1 << 11
	// MaxFill is the longest time that a bucket may take to fill, or a queue to drain. A larger debt is cut to it.
	MaxFill = mostAhead * time.Microsecond
	// Tick is the unit of time: periods, gaps, leases and origins are whole ticks.
	Tick = time.Microsecond
)

const (
	mostAhead = 1 << 51 // us; 71 years
	mostUnits = 1 << 53
)

// kind numbers the functions of the script.
type kind uint8

const (
	kindNone kind = iota // a limit without a state; the script never sees it
	kindBucket
	kindLeaky
	kindWindow
	kindCycle
	kindLog
	kindSlots
)

// fixed reports whether the states have a fixed size. Those of one rule and key are in one value.
func (k kind) fixed() bool { return k < kindLog }

// count returns how many numbers a state of fixed size has, and numbers their format in the script.
func (k kind) count() int {
	switch k {
	case kindBucket:
		return 5
	case kindLeaky:
		return 6
	}
	return 3
}

func (k kind) numbers() string {
	switch k {
	case kindBucket:
		return "dI4I4dd"
	case kindLeaky:
		return "dI4I4ddd"
	}
	return "ddd"
}

// bytes returns their length.
func (k kind) bytes() int {
	if k <= kindLeaky {
		return 8 * (k.count() - 1) // two numbers have 4 bytes
	}
	return 8 * k.count()
}

// measured reports whether the script replies with waits and room. For other kinds it replies with the state, and the
// engine computes the answer.
func (k kind) measured() bool { return k >= kindLog }

// limit is a weir.Limit in the form of the script, with all times in us.
type limit struct {
	kind     kind
	capacity int64
	letter   string // the name of the algorithm
	identity string // of a state of fixed size in its value
	state    string // the name of a key's value
	line     string // and of the line of callers that wait for it
	earlier  []formerKey
	denied   bool // a refusal may be written
	weight   int  // see work

	leaseless bool // slots with DefaultLease

	period, origin, gap int64
	weighs, gate        bool

	den, unit int64 // of a bucket: a unit takes unit/den us
	most      int64 // the most units that one call can record on a bucket
	fill      span  // time of the burst
	early     span  // of a leaky bucket: by how much a release is earlier than TAT after it

	functions enginekit.Functions // in ticks
}

// span is a time in whole us and 1/den us.
type span struct{ whole, rest float64 }

// compiled is a rule in the form of the script, or the reason the engine cannot hold it.
type compiled struct {
	limits    []limit
	single    *limit // the only limit, if a take of it alone needs no lease and no other check
	stateless bool   // some of the limits have no state
	err       error
}

func compile(r *weir.Rule) *compiled {
	c := &compiled{}
	var problems []error
	states := enginekit.StateNames(r)
	for i, l := range r.Limits() {
		made, err := newLimit(l)
		if made.kind == kindNone {
			c.stateless = true
		} else {
			made.name(states[i])
		}
		made.weight = made.work()
		c.limits = append(c.limits, made)
		problems = append(problems, err)
	}
	c.setEarlier(states)
	if c.err = errors.Join(problems...); c.err == nil {
		c.err = c.checkWork(r)
	}
	if l := &c.limits[0]; c.err == nil && len(c.limits) == 1 && l.kind != kindNone && l.kind != kindSlots {
		c.single = l
	}
	return c
}

// name names the state of a key. long is the name that enginekit gives it. A log, a gate and slots have a value of
// their own, under the rule's name and a letter for the algorithm, with the numbers that distinguish states and the
// ordinal if it is not the first. The others share the value under the rule's name alone, and have an identity in it: the
// letter, the ordinal and the numbers.
func (l *limit) name(long string) {
	fields := strings.Split(long, "\x00") // the rule's name, the identity, the ordinal
	rule := string(appendEscaped(nil, fields[0]))
	if !l.kind.fixed() {
		code := l.letter
		if l.kind == kindLog {
			code += strconv.FormatInt(l.period, 36)
		}
		if fields[2] != "0" {
			code += "." + fields[2]
		}
		l.state, l.line = rule+":"+code+":", rule+":q"+code+":"
		return
	}
	l.state, l.line = rule+"::", rule+":q:"
	ordinal, _ := strconv.Atoi(fields[2]) // below rule.MaxLimits
	id := append([]byte(l.letter), byte(ordinal))
	if l.kind > kindLeaky {
		id = doubles(id, float64(l.period))
	}
	if l.kind == kindCycle {
		id = doubles(id, float64(l.origin))
	}
	l.identity = string(id)
}

func newLimit(l weir.Limit) (limit, error) {
	b := bounds{text: l.String()}
	functions, err := enginekit.FunctionsOf(l, Tick)
	if err == nil && functions.Stateless() {
		return stateless(functions), nil
	}
	made, letter := limit{}, ""
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
		made.kind = kindLeaky
		made.early, _ = made.takes(min(l.NoDelay, l.Queue) + 1)
		b.count("nodelay", l.NoDelay, MaxCount)
	case weir.FixedWindow:
		letter = "f"
		made = newWindow(&b, l.Rate, kindWindow, MaxCount)
	case weir.SlidingWindow:
		letter = "w"
		made = newWindow(&b, l.Rate, kindWindow, MaxCount)
		made.weighs = true
	case weir.Cycle:
		letter = "c"
		made = newWindow(&b, l.Rate, kindCycle, MaxCount)
		made.origin = floorMod(ticks(l.Origin), made.period)
	case weir.SlidingLog:
		letter = "s"
		made = newWindow(&b, l.Rate, kindLog, MaxLog)
		made.gap = ticks(l.Gap)
		made.denied = l.CountDenied
	case weir.RateGate:
		letter = "g"
		made = newWindow(&b, l.Rate, kindLog, MaxLog)
		made.gate = true
	case weir.Concurrency:
		letter = "n"
		b.count("slots", l.Slots, MaxSlots)
		made = limit{kind: kindSlots, capacity: l.Slots, period: ticks(cmp.Or(l.Lease, DefaultLease)), leaseless: l.Lease == 0}
	default:
		b.refuse("value", "is a limit that Redis cannot hold")
	}
	made.letter, made.functions = letter, functions
	return made, errors.Join(append(b.problems, err)...)
}

func newWindow(b *bounds, r weir.Rate, k kind, most int64) limit {
	b.count("rate", r.Count, most)
	return limit{kind: k, capacity: r.Count, period: max(ticks(r.Period), 1)}
}

func newBucket(b *bounds, r weir.Rate, burst int64, name string) limit {
	made := newWindow(b, r, kindBucket, MaxCount)
	b.count(name, burst, MaxCount)
	common := gcd(r.Count, made.period)
	made.capacity, made.den, made.unit = burst, r.Count/common, made.period/common
	var ok bool
	if made.fill, ok = made.takes(burst); !ok {
		b.refuse(name, fmt.Sprintf("%d takes more than 71 years to fill", burst))
	}
	hi, lo := bits.Mul64(mostAhead, uint64(made.den))
	made.most = mostUnits
	if hi < uint64(made.unit) {
		units, _ := bits.Div64(hi, lo, uint64(made.unit))
		made.most = max(int64(min(units, mostUnits)), burst+1)
	}
	return made
}

// takes returns the time of n units of a bucket, or MaxFill and false if it is longer.
func (l *limit) takes(n int64) (span, bool) {
	hi, lo := bits.Mul64(uint64(n), uint64(l.unit))
	if hi >= uint64(l.den) {
		return span{whole: mostAhead}, false
	}
	whole, rest := bits.Div64(hi, lo, uint64(l.den))
	if whole > mostAhead || whole == mostAhead && rest > 0 {
		return span{whole: mostAhead}, false
	}
	return span{float64(whole), float64(rest)}, true
}

// spent returns the time until an empty state is fresh again.
func (l *limit) spent() float64 {
	switch {
	case l.kind <= kindLeaky && l.fill.rest > 0:
		return l.fill.whole + 1
	case l.kind <= kindLeaky:
		return l.fill.whole
	case l.weighs:
		return 2 * float64(l.period)
	}
	return float64(l.period)
}

// state returns the state of the part from the stored numbers. ok is false if they are not a state.
func (p *part) state() (s enginekit.State, ok bool) { return p.stateIn(new([6]int64)) }

// stateIn is state with space to work in.
func (p *part) stateIn(space *[6]int64) (s enginekit.State, ok bool) {
	l, n := p.limit, &p.stored
	if math.IsInf(n[0], -1) {
		return l.functions.Fresh(), true
	}
	numbers := space[:3]
	switch {
	case l.kind <= kindLeaky:
		numbers = space[:]
		numbers[2], numbers[3] = int64(n[2]), int64(n[3])
		numbers[0], numbers[1] = instant(int64(n[0]), int64(n[1]), numbers[2])
		numbers[4], numbers[5] = orNever(n[4]), orNever(n[5])
		if numbers[4] > math.MinInt64 && n[4] != math.Floor(n[4]) { // half a us after a booked instant
			numbers[4], numbers[5] = math.MinInt64, numbers[4]
		}
	case !l.weighs: // a fixed window, or a cycle
		numbers = numbers[:2]
		numbers[0], numbers[1] = (int64(n[0])-l.origin)/l.period, int64(n[1])
	default:
		numbers[0], numbers[1], numbers[2] = int64(n[0])/l.period, int64(n[1]), int64(n[2])
	}
	return l.functions.FromNumbers(numbers)
}

// orNever returns an instant, or the one before all time.
func orNever(n float64) int64 {
	if math.IsInf(n, -1) {
		return math.MinInt64
	}
	return int64(n)
}

// instant returns whole + rest/den in 1/den us, as the halves of 128 bits.
func instant(whole, rest, den int64) (high, low int64) {
	hi, lo := bits.Mul64(uint64(whole), uint64(den))
	if whole < 0 {
		hi -= uint64(den)
	}
	lo, carry := bits.Add64(lo, uint64(rest), 0)
	return int64(hi + carry), int64(lo)
}

// after returns the TAT that the take of a leaky bucket left.
func (p *part) after(now int64) span {
	s, ok := p.state()
	if !ok {
		return span{}
	}
	return p.tatOf(p.limit.functions.Take(s, now, p.cost, 0))
}

// tatOf returns the TAT of the state of a bucket.
func (p *part) tatOf(s enginekit.State) span {
	n := p.limit.functions.AppendNumbers(nil, s)
	tat := new(big.Int).Lsh(big.NewInt(n[0]), 64)
	whole, rest := tat.Or(tat, new(big.Int).SetUint64(uint64(n[1]))).DivMod(tat, big.NewInt(n[2]), new(big.Int))
	return span{float64(whole.Int64()), float64(rest.Int64())}
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

func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }
