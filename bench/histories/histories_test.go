package histories

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weirflow/weir"
)

const capacity = 10

// limits are the limits of the histories, with their models.
var limits = []struct {
	limit weir.Limit
	rules []rules
}{
	{weir.TokenBucket{Rate: weir.Per(1, step), Burst: capacity}, []rules{bucket{capacity}}},
	{weir.FixedWindow{Rate: weir.Per(capacity, 3*step)}, []rules{window{capacity, 3}}},
	{weir.Cycle{Rate: weir.Per(capacity, 3*step)}, []rules{cycle{capacity, 3}}},
}

// fineUnits are those of the fine rates for each unit of the models. A unit of 100/13 ms needs two words.
const fineUnits = 13

// rows are rules of several limits, or of a fine rate, with their models.
var rows = []struct {
	name   string
	limits []weir.Limit
	units  int64 // for each unit of a call
	rules  []rules
}{
	{"fine rate", []weir.Limit{weir.TokenBucket{Rate: weir.Per(fineUnits, step), Burst: fineUnits * capacity}}, fineUnits, []rules{bucket{capacity}}},
	{"bucket and window", []weir.Limit{
		weir.TokenBucket{Rate: weir.Per(1, step), Burst: capacity - 2}, weir.FixedWindow{Rate: weir.Per(capacity, 3*step)},
	}, 1, []rules{bucket{capacity - 2}, window{capacity, 3}}},
	{"fine rate, window and cycle", []weir.Limit{
		weir.TokenBucket{Rate: weir.Per(2*fineUnits, step), Burst: fineUnits * (capacity - 1)},
		weir.FixedWindow{Rate: weir.Per(fineUnits*capacity, 3*step)}, weir.Cycle{Rate: weir.Per(fineUnits*(capacity+1), 2*step)},
	}, fineUnits, []rules{fastBucket{capacity - 1, 2}, window{capacity, 3}, cycle{capacity + 1, 2}}},
}

// engine makes decisions with a Memory on the test's clock.
type engine struct {
	memory *weir.Memory
	rule   *weir.Rule
	now    atomic.Int64
	fail   func(error)
}

func newEngine(t *testing.T, limit weir.Limit) asker { return engineOf(t, limit) }

// scaled asks for more units.
type scaled struct {
	asker
	units int64
}

func (s scaled) ask(c call) answer {
	c.cost *= s.units
	a := s.asker.ask(c)
	if a.Remaining%s.units == 0 { // otherwise no model has such an answer
		a.Remaining /= s.units
	}
	return a
}

// newRow returns an engine that decides on three equal limits at once. Its answers are those of one.
func newRow(t *testing.T, limit weir.Limit) asker { return engineOf(t, limit, limit, limit) }

func engineOf(t *testing.T, limits ...weir.Limit) asker {
	rule, err := weir.NewRule("history", limits...)
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{rule: rule, fail: func(err error) { t.Error(err) }}
	e.memory = weir.NewMemory(weir.MemoryOptions{Clock: e.now.Load})
	return e
}

func (e *engine) advance(steps int64) { e.now.Store(steps * int64(step)) }

func (e *engine) ask(c call) answer {
	var requests []weir.Request
	for _, key := range c.keys {
		requests = append(requests, e.rule.For(fmt.Sprint(key), c.cost))
	}
	var d weir.Decision
	var err error
	switch ctx := context.Background(); c.verb {
	case take:
		d, err = e.memory.Take(ctx, requests...)
	case peek:
		d, err = e.memory.Peek(ctx, requests...)
	case record:
		write := e.memory.Record
		if c.cost < 0 {
			write = e.memory.Return
			for i := range requests {
				requests[i].Cost = -c.cost
			}
		}
		d, err = write(ctx, requests...)
	case reset:
		err = e.memory.Reset(ctx, requests...)
	}
	if err != nil {
		e.fail(err)
	}
	if len(c.keys) > 1 {
		return answer{Allowed: d.Allowed}
	}
	return answerOf(d)
}

// verbs are the methods of a Limiter, and of a Keyed with a fixed key.
type verbs interface {
	Take(n int64) weir.Decision
	Peek(n int64) weir.Decision
	Record(n int64) weir.Decision
	Return(n int64) weir.Decision
	Reset()
}

// bubble makes decisions with limiters on the clock of a synctest bubble, which stands still during a call.
type bubble struct {
	start time.Time
	of    func(key int) verbs
}

func (b *bubble) advance(steps int64) {
	time.Sleep(time.Until(b.start.Add(time.Duration(steps) * step)))
}

func (b *bubble) ask(c call) answer {
	v := b.of(c.keys[0])
	switch c.verb {
	case take:
		return answerOf(v.Take(c.cost))
	case peek:
		return answerOf(v.Peek(c.cost))
	case record:
		if c.cost < 0 {
			return answerOf(v.Return(-c.cost))
		}
		return answerOf(v.Record(c.cost))
	}
	v.Reset()
	return answer{}
}

func newLimiters(t *testing.T, limit weir.Limit) asker {
	var made []*weir.Limiter
	for range keys {
		l, err := weir.New(limit)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, l)
	}
	return &bubble{time.Now(), func(key int) verbs { return made[key] }}
}

// ofKey is a Keyed with a fixed key.
type ofKey struct {
	k   *weir.Keyed[int]
	key int
}

func (o ofKey) Take(n int64) weir.Decision   { return o.k.Take(o.key, n) }
func (o ofKey) Peek(n int64) weir.Decision   { return o.k.Peek(o.key, n) }
func (o ofKey) Record(n int64) weir.Decision { return o.k.Record(o.key, n) }
func (o ofKey) Return(n int64) weir.Decision { return o.k.Return(o.key, n) }
func (o ofKey) Reset()                       { o.k.Reset(o.key) }

func newKeyed(t *testing.T, limit weir.Limit) asker {
	k, err := weir.NewKeyed[int](limit)
	if err != nil {
		t.Fatal(err)
	}
	return &bubble{time.Now(), func(key int) verbs { return ofKey{k, key} }}
}

// keys is small, so that workers contend.
const keys = 2

const histories = 40

func TestHistoriesAreLinearizable(t *testing.T) {
	askers := []struct {
		name      string
		construct func(*testing.T, weir.Limit) asker
	}{{"Memory", newEngine}, {"three limits", newRow}, {"Limiter", newLimiters}, {"Keyed", newKeyed}}
	for _, a := range askers {
		for _, l := range limits {
			t.Run(fmt.Sprintf("%s/%v", a.name, l.limit), func(t *testing.T) {
				s := script{keys: keys, workers: 4, phases: 5, calls: 12}
				m := model(l.rules, keys)
				m.Partition = byKey(keys)
				checkHistories(t, m, s, func(t *testing.T) asker { return a.construct(t, l.limit) })
			})
		}
	}
}

// Rules of several limits and fine rates, of one key at a time and of two at once.
func TestHistoriesOfSeveralLimitsAreLinearizable(t *testing.T) {
	for _, r := range rows {
		newAsker := func(t *testing.T) asker { return scaled{engineOf(t, r.limits...), r.units} }
		t.Run(r.name, func(t *testing.T) {
			m := model(r.rules, keys)
			m.Partition = byKey(keys)
			checkHistories(t, m, script{keys: keys, workers: 4, phases: 5, calls: 12}, newAsker)
		})
		t.Run(r.name+" of two keys", func(t *testing.T) {
			checkHistories(t, model(r.rules, keys), script{keys: keys, workers: 3, phases: 4, calls: 8, together: true}, newAsker)
		})
	}
}

// One call about two keys takes both or none, and no other call sees half of it.
func TestHistoriesOfTwoKeysAtOnceAreLinearizable(t *testing.T) {
	for name, newAsker := range map[string]func(*testing.T, weir.Limit) asker{"one limit": newEngine, "three limits": newRow} {
		for _, l := range limits {
			t.Run(fmt.Sprintf("%s/%v", name, l.limit), func(t *testing.T) {
				s := script{keys: keys, workers: 3, phases: 4, calls: 8, together: true}
				checkHistories(t, model(l.rules, keys), s, func(t *testing.T) asker { return newAsker(t, l.limit) })
			})
		}
	}
}

func checkHistories(t *testing.T, m porcupine.Model, s script, construct func(*testing.T) asker) {
	overlaps, undecided := 0, 0
	for s.seed = range uint64(histories) {
		var history []porcupine.Operation
		synctest.Test(t, func(t *testing.T) { history = play(construct(t), s) })
		overlaps += overlapping(history)
		if !linearizable(t, m, s.seed, history) {
			undecided++
		}
	}
	mostDecided(t, undecided)
	if overlaps == 0 {
		t.Errorf("no call of %d histories overlapped another, want contention", histories)
	}
}

// longestCheck bounds the search for an order of one history. The more calls overlap, the longer it takes, on a busy
// machine for hours. It does not end in virtual time.
const longestCheck = 5 * time.Second

// linearizable fails the test if no order explains the history. It reports whether the search ended.
func linearizable(t *testing.T, m porcupine.Model, seed uint64, history []porcupine.Operation) bool {
	t.Helper()
	got := porcupine.CheckOperationsTimeout(m, history, longestCheck)
	if got == porcupine.Illegal {
		t.Fatalf("history of seed %d is %s, want %s:\n%s", seed, got, porcupine.Ok, describe(history))
	}
	return got == porcupine.Ok
}

// mostDecided fails the test if too many searches did not end.
func mostDecided(t *testing.T, undecided int) {
	t.Helper()
	if undecided > histories/4 {
		t.Errorf("%d of %d histories were not decided within %v, want three quarters decided", undecided, histories, longestCheck)
	}
}

func describe(history []porcupine.Operation) (text string) {
	for _, o := range history {
		text += fmt.Sprintf("%d: [%d, %d] %+v -> %+v\n", o.ClientId, o.Call, o.Return, o.Input, o.Output)
	}
	return text
}

// racy peeks first and takes later.
type racy struct{ verbs }

func (r racy) Take(n int64) weir.Decision {
	d := r.Peek(n)
	runtime.Gosched()
	if d.Allowed {
		r.Record(n)
		d.Remaining -= n
	}
	return d
}

func TestALimiterThatLooksBeforeItTakesIsNoticed(t *testing.T) {
	m := model(limits[0].rules, keys)
	m.Partition = byKey(keys)
	for seed := range uint64(histories) {
		var history []porcupine.Operation
		synctest.Test(t, func(t *testing.T) {
			right := newKeyed(t, limits[0].limit).(*bubble)
			wrong := &bubble{right.start, func(key int) verbs { return racy{right.of(key)} }}
			history = play(wrong, script{keys: keys, workers: 4, phases: 5, calls: 12, seed: seed})
		})
		if porcupine.CheckOperationsTimeout(m, history, longestCheck) == porcupine.Illegal {
			return
		}
	}
	t.Errorf("%d histories of a limiter that looks before it takes are linearizable, want one that is not", histories)
}
