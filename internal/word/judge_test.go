package word

import (
	"fmt"
	"math/rand/v2"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// judge takes at random from the words of a few tables, and takes the same from states by the functions of 128 bits. Both
// must agree. It stands for the caller of package word: it keeps states that do not fit in words, and decides on them.
type judge struct {
	random *rand.Rand
	base   int64
	now    int64
	tables []*judged
	rows   map[[MaxLimits]*Limit]*Row
	keys   int
	ops    int
	// Decisions on the words alone, and those of several keys.
	decided, together int
}

// judged is a table under test.
type judged struct {
	*Table
	columns []*judgedColumn
}

// judgedColumn is a column, the limits that decide on it, and the state of each key.
type judgedColumn struct {
	*Column
	kind      kind
	limits    []*Limit
	states    map[table.Hash]algorithm.State // of all keys
	elsewhere map[table.Hash]bool            // whose state is in no words
}

func newJudge(seed uint64) *judge {
	random := rand.New(rand.NewPCG(seed, 17))
	j := &judge{rows: map[[MaxLimits]*Limit]*Row{}, random: random, keys: 1 + random.IntN(40)}
	if random.IntN(4) == 0 {
		j.keys = 3000 // segments split, and idle keys are evicted
	}
	j.base = random.Int64N(1<<61) - 1<<60
	j.now = j.base
	for range 1 + random.IntN(2) {
		t := &judged{Table: NewTable(0)}
		for range 1 + random.IntN(3) {
			t.addColumn(j)
		}
		j.tables = append(j.tables, t)
	}
	return j
}

// addColumn adds a column of a random kind, if the entries have room for it.
func (t *judged) addColumn(j *judge) {
	k := j.newKind()
	like := j.newLimit(k)
	if c := t.AddColumn(like, j.now); c != nil {
		t.columns = append(t.columns, &judgedColumn{Column: c, kind: k, limits: []*Limit{c.Limit(like)}, states: map[table.Hash]algorithm.State{}, elsewhere: map[table.Hash]bool{}})
	}
}

// addLimit adds a limit with another rate or count to a column.
func (c *judgedColumn) addLimit(j *judge) {
	if len(c.limits) < 6 {
		c.limits = append(c.limits, c.Column.Limit(j.newLimit(c.kind)))
	}
}

const year = 366 * 24 * 3600 * 1_000_000_000

// kind is what the limits of a column have in common.
type kind struct {
	name   string
	period int64 // of a window
}

func (j *judge) newKind() kind {
	names := []string{"bucket", "bucket", "bucket", "leaky", "window", "sliding", "cycle"}
	return kind{names[j.random.IntN(len(names))], 1 + j.random.Int64N(int64(year)>>j.random.IntN(54))}
}

// newLimit returns a limit of a kind. Rates are mostly fractions in lowest terms.
func (j *judge) newLimit(k kind) algorithm.Worder {
	burst := 1 + j.random.Int64N(1<<40>>j.random.IntN(40))
	switch k.name {
	case "window":
		return algorithm.NewFixedWindow(burst, k.period)
	case "sliding":
		return algorithm.NewSlidingWindow(burst, k.period)
	case "cycle":
		return algorithm.NewCycle(burst, k.period, k.period/3)
	}
	period := 1 + j.random.Int64N(int64(year)>>j.random.IntN(54))
	rate := 1 + j.random.Int64N(min(period, 1<<53)>>j.random.IntN(30)+1)%min(period, 1<<53)
	if j.random.IntN(3) == 0 {
		period, rate = 1_000_000_000, []int64{1, 3, 7, 10, 11, 60, 333, 999_983, 1 << 20}[j.random.IntN(9)]
	}
	if k.name == "leaky" {
		return algorithm.NewLeakyBucket(rate, period, burst, []int64{0, 1, burst / 2, burst}[k.period%4])
	}
	return algorithm.NewTokenBucket(rate, period, burst)
}

// judgedAsk is one request: a cost of a key under some limits of a table, and the row of them.
type judgedAsk struct {
	in      *judged
	columns []*judgedColumn
	Row     *Row
	Hash    table.Hash
	N       int64
}

// newAsk draws a request.
func (j *judge) newAsk() (q judgedAsk) {
	q.in = j.tables[j.random.IntN(len(j.tables))]
	var limits []*Limit
	for _, c := range q.in.columns {
		if c.kind.name == "leaky" && limits != nil || limits != nil && limits[0].Words().Solitary() {
			continue
		}
		if len(limits) < 2 && j.random.IntN(2) == 0 || c == q.in.columns[len(q.in.columns)-1] && limits == nil {
			q.columns = append(q.columns, c)
			limits = append(limits, c.limits[j.random.IntN(len(c.limits))])
		}
	}
	q.Row = j.rowOf(q.in.Table, limits)
	q.Hash = hashOf(j.random.IntN(j.keys))
	q.N = j.random.Int64N(4)
	if most := limits[0].Words().Capacity(); j.random.IntN(3) == 0 {
		q.N = j.random.Int64N(most + 2)
	}
	return q
}

// hashOf returns a hash that is as good as random.
func hashOf(key int) table.Hash {
	h := uint64(key+1) * 0x9e3779b97f4a7c15
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	return table.Hash(h ^ h>>32)
}

// step makes one decision and compares it. It returns a difference.
func (j *judge) step() error {
	j.ops++
	switch j.random.IntN(3000) {
	case 0:
		j.tables[0].addColumn(j)
	case 1, 2:
		c := j.tables[0].columns
		c[j.random.IntN(len(c))].addLimit(j)
	}
	asks := []judgedAsk{j.newAsk()}
	if j.random.IntN(3) == 0 {
		second := j.newAsk()
		alone := asks[0].Row.limits[0].Words().Solitary() || second.Row.limits[0].Words().Solitary()
		if !alone && (second.in != asks[0].in || second.Hash != asks[0].Hash) {
			asks = append(asks, second)
		}
	}
	wait, err := j.decide(asks)
	j.advance(asks[0], wait)
	return err
}

// advance moves the clock: often to the end of a wait, or one ns before it, and sometimes back.
func (j *judge) advance(q judgedAsk, wait int64) {
	switch j.random.IntN(8) {
	case 0:
		j.now -= j.random.Int64N(1e6)
	case 1, 2:
	case 3, 4:
		if wait > 0 && wait < 1<<50 {
			j.now += wait - j.random.Int64N(2)
		}
	default:
		unit := int64(1e9)
		if r := algorithm.RateOf(q.Row.limits[0].Words()); r.Den > 0 {
			unit = r.Unit / r.Den
		}
		j.now += j.random.Int64N(max(unit, 1)*3>>j.random.IntN(4) + 2)
	}
	j.now = min(max(j.now, j.base-5), j.base+9*year) // beyond nine years nothing is in words
}

// parts returns the parts of a decision on the states.
func (j *judge) parts(asks []judgedAsk) (parts []algorithm.Part) {
	for _, q := range asks {
		for i, c := range q.columns {
			s, known := c.states[q.Hash]
			if !known {
				s = q.Row.limits[i].Words().Fresh()
			}
			parts = append(parts, algorithm.Part{Algorithm: q.Row.limits[i].Words(), State: s, Cost: q.N})
		}
	}
	return parts
}

// decide decides on words, or as the caller of package word on states that are not in words, and on the states.
func (j *judge) decide(asks []judgedAsk) (wait int64, err error) {
	var got algorithm.Answer
	allowOnly, done := j.random.IntN(4) == 0, false
	switch q := asks[0]; {
	case len(asks) > 1 || len(q.columns) > 1:
		done = j.take(asks, &got)
	case allowOnly && q.N > 0:
		return j.allow(q)
	default:
		done = q.Row.limits[0].Take(q.Hash, j.now, q.N, &got)
	}
	if !done {
		return j.underLock(asks)
	}
	j.decided++
	parts := j.parts(asks)
	want := algorithm.Take(parts, j.now)
	if got != want {
		return 0, fmt.Errorf("op %d at %d: %s: the words answer %+v, the states %+v", j.ops, j.now-j.base, describeAsks(asks), got, want)
	}
	j.keep(asks, parts)
	return want.RetryAfter, j.compareWords(asks)
}

// take decides on the words of all asks at once, if words tell the rates of their limits.
func (j *judge) take(asks []judgedAsk, a *algorithm.Answer) (done bool) {
	var all []Ask
	for _, q := range asks {
		if NewRow(q.Row.limits) == nil {
			return false
		}
		all = append(all, Ask{q.Row, q.Hash, q.N})
	}
	if done = Decide(all, j.now, false, a); done {
		j.together += len(asks) - 1
	}
	return done
}

func describeAsks(asks []judgedAsk) (text string) {
	for _, q := range asks {
		for _, l := range q.Row.limits {
			text += fmt.Sprintf("%d of %#x under %T of %d, rate %+v; ", q.N, uint64(q.Hash), l.Words(), l.Words().Capacity(), algorithm.RateOf(l.Words()))
		}
	}
	return text
}

func (j *judge) allow(q judgedAsk) (wait int64, err error) {
	got, done := q.Row.limits[0].Allow(q.Hash, j.now, q.N)
	if !done {
		return j.underLock([]judgedAsk{q})
	}
	j.decided++
	parts := j.parts([]judgedAsk{q})
	p := &parts[0]
	wait = p.Algorithm.Wait(p.State, j.now, min(q.N, p.Algorithm.Capacity()))
	var want bool
	if want, p.Changed = algorithm.Allow(p.Algorithm, &p.State, j.now, q.N); got != want {
		return 0, fmt.Errorf("op %d at %d: %s: the words allow: %v, the states: %v", j.ops, j.now-j.base, describeAsks([]judgedAsk{q}), got, want)
	}
	j.keep([]judgedAsk{q}, parts)
	return wait, j.compareWords([]judgedAsk{q})
}

// keep stores the states of changed parts.
func (j *judge) keep(asks []judgedAsk, parts []algorithm.Part) {
	for _, q := range asks {
		for _, c := range q.columns {
			if parts[0].Changed {
				c.states[q.Hash] = parts[0].State
			}
			parts = parts[1:]
		}
	}
}

// compareWords compares the words of the keys with their states.
func (j *judge) compareWords(asks []judgedAsk) error {
	for _, q := range asks {
		for i, c := range q.columns {
			e := q.in.Find(q.Hash)
			w := q.in.layoutOf(e).read(c.Column, e, e.First())
			if err := j.compare(c, q.Row.limits[i], q.Hash, w, j.now); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare compares the words of a key with its state. A state that words do not tell is idle.
func (j *judge) compare(c *judgedColumn, l *Limit, h table.Hash, w Words, now int64) error {
	want, known := c.states[h]
	if w.First == table.Fresh {
		if known && !algorithm.Idle(c.like, want, now) {
			return fmt.Errorf("op %d at %d: key %#x has no words, its state is %+v", j.ops, now-j.base, uint64(h), want)
		}
		return nil
	}
	if got := l.Unpack(w); got.A != want.A || got.B != want.B || got.C != want.C || got.Unit != want.Unit {
		return fmt.Errorf("op %d at %d: the words of key %#x mean %+v, its state is %+v", j.ops, now-j.base, uint64(h), got, want)
	}
	return nil
}

// underLock decides as the caller of package word does: it borrows the entries, and puts the states back as words if
// they fit.
func (j *judge) underLock(asks []judgedAsk) (wait int64, err error) {
	loans := make([]Loan, len(asks))
	at := j.now
	for i, q := range asks {
		loans[i], _ = q.in.Borrow(q.Hash, j.now)
		for k, c := range q.columns {
			w := loans[i].Read(c.Column)
			switch {
			case (w.First == table.Elsewhere) != c.elsewhere[q.Hash]:
				err = fmt.Errorf("op %d: key %#x reads %#x, its state is not in words: %v", j.ops, uint64(q.Hash), w.First, c.elsewhere[q.Hash])
			case c.elsewhere[q.Hash]:
			case w.First == table.Fresh:
				at = max(at, q.in.Swept())
			default:
				err = j.compare(c, q.Row.limits[k], q.Hash, w, j.now)
			}
			if err != nil {
				return 0, err
			}
		}
	}
	parts := j.parts(asks)
	answer := algorithm.Take(parts, at)
	for i, q := range asks {
		for k, c := range q.columns {
			j.putBack(c, q.Row.limits[k], &loans[i], q.Hash, &parts[k])
		}
		parts = parts[len(q.columns):]
		loans[i].Return(j.now)
	}
	return answer.RetryAfter, nil
}

// putBack stores a state in the words of a loan if it fits. An unchanged state belongs to the rate that wrote it, so it
// stays where it is.
func (j *judge) putBack(c *judgedColumn, l *Limit, loan *Loan, h table.Hash, p *algorithm.Part) {
	if !p.Changed {
		return
	}
	c.states[h] = p.State
	w, ok := l.Pack(p.State, j.now)
	if c.elsewhere[h] = !ok; !ok {
		w = Words{First: table.Elsewhere}
	}
	loan.Write(c.Column, w, j.now)
}

// rowOf returns the row of limits, which callers keep.
func (j *judge) rowOf(in *Table, limits []*Limit) *Row {
	var key [MaxLimits]*Limit
	copy(key[:], limits)
	if j.rows[key] == nil {
		j.rows[key] = newRow(in, limits)
	}
	return j.rows[key]
}
