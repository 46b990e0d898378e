package otherwisetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/layer"
)

// Duel plays the vectors on Otherwise over an engine. It then makes random calls there and on the model over a memory engine, and
// compares every answer and all states. newEngine returns an empty engine that decides by the clock.
func Duel(t *testing.T, rounds int, newEngine func(clock func() int64) weir.Engine) {
	t.Helper()
	playVectors(t, newEngine)
	play(t, rounds, true, newEngine)
}

// DuelOnLanes works like Duel without vectors and bans: of requests on several lanes of a cluster a ban counts no refusal of those that are asked
// after the first one.
func DuelOnLanes(t *testing.T, rounds int, newEngine func(clock func() int64) weir.Engine) {
	t.Helper()
	play(t, rounds, false, newEngine)
}

func play(t *testing.T, rounds int, bans bool, newEngine func(clock func() int64) weir.Engine) {
	t.Helper()
	met := map[string]int{}
	if !bans {
		met["banned"] = rounds
	}
	random := rand.New(rand.NewPCG(randtest.Seed(t), 58))
	for round := range rounds {
		d := newDuel(t, random, newEngine)
		d.met, d.bans = met, bans
		for range 80 {
			if d.step(); t.Failed() {
				t.Fatalf("round %d differs; its calls:\n%s", round, d.history)
			}
		}
	}
	t.Logf("met: %v", met)
	for _, what := range []string{"paid by the first", "paid by link 1", "paid by link 2", "paid by link 3", "refused", "banned", "denied", "never", "two pay to one", "settled", "tried again", "some times", "reserved by another"} {
		if met[what] < rounds/4 {
			t.Errorf("%d times %s in %d rounds: it proves little", met[what], what, rounds)
		}
	}
}

type duel struct {
	*testing.T
	random  *rand.Rand
	now     atomic.Int64 // which engines read in the background
	rules   []*weir.Rule
	layered weir.Engine
	model   model
	open    [][2]*weir.Reservation // the layer's and the model's
	history string
	met     map[string]int
	bans    bool
}

// The rules of a duel. Their instants are whole milliseconds, so that engines of any tick agree.
var limits = []struct {
	name   string
	limits []weir.Limit
}{
	{"floor", []weir.Limit{weir.TokenBucket{Rate: weir.Per(5, time.Minute), Burst: 4}}},
	{"own", []weir.Limit{weir.FixedWindow{Rate: weir.Per(4, 20*time.Second)}}},
	{"pool", []weir.Limit{weir.TokenBucket{Rate: weir.Per(8, time.Minute), Burst: 6}}},
	{"credits", []weir.Limit{weir.FixedWindow{Rate: weir.Per(9, 40*time.Second)}, weir.TokenBucket{Rate: weir.Per(12, time.Minute), Burst: 7}}},
	{"log", []weir.Limit{weir.SlidingLog{Rate: weir.Per(3, 20*time.Second)}}},
	{"slots", []weir.Limit{weir.Concurrency{Slots: 2, Lease: 30 * time.Second}}},
	{"spare", []weir.Limit{weir.Concurrency{Slots: 3, Lease: 40 * time.Second}, weir.TokenBucket{Rate: weir.Per(10, time.Minute)}}},
	{"strict", []weir.Limit{weir.TokenBucket{Rate: weir.Per(6, time.Minute), Burst: 3}, weir.Ban{After: 2, Within: time.Minute, For: 2 * time.Minute}}},
	{"blocked", []weir.Limit{weir.DenyAll{}}},
}

const strict = 7 // the index of the rule with a ban

func newDuel(t *testing.T, random *rand.Rand, newEngine func(clock func() int64) weir.Engine) *duel {
	d := &duel{T: t, random: random}
	d.now.Store(1_700_000_000_000_000_000)
	for _, l := range limits {
		rule, err := weir.NewRule(l.name, l.limits...)
		if err != nil {
			t.Fatal(err)
		}
		d.rules = append(d.rules, rule)
	}
	clock := d.now.Load
	layered, err := layer.Otherwise(newEngine(clock))
	if err != nil {
		t.Fatal(err)
	}
	d.layered, d.model = layered, model{weir.NewMemory(weir.MemoryOptions{Clock: clock})}
	return d
}

// keys of tenants; a rule that comes late in a chain has mostly the key of all.
func (d *duel) request(rule *weir.Rule) weir.Request {
	key := "all"
	if d.random.IntN(3) > 0 {
		key = []string{"a", "b"}[d.random.IntN(2)]
	}
	return rule.For(key, d.random.Int64N(4))
}

// chain returns a request with up to four others in its place, each under another rule.
func (d *duel) chain() weir.Request {
	order := d.random.Perm(len(d.rules))
	cost := 1 + d.random.Int64N(3)
	var q *weir.Request
	for _, i := range order[:1+d.random.IntN(5)] {
		if d.rules[i].Name() == "blocked" && d.random.IntN(3) > 0 {
			continue
		}
		if i == strict && (q != nil || !d.bans) { // nothing stands in place of a ban
			continue
		}
		next := d.request(d.rules[i])
		if next.Otherwise = q; d.random.IntN(4) > 0 { // mostly the same cost
			next.Cost = cost
		}
		if q = &next; d.random.IntN(50) == 0 {
			next.Cost = 50 // which never fits
		}
	}
	if q == nil {
		return d.chain()
	}
	return *q
}

func (d *duel) requests() (requests []weir.Request) {
	for range 1 + d.random.IntN(3) {
		requests = append(requests, d.chain())
	}
	if d.bans && d.random.IntN(8) == 0 {
		requests = append(requests, d.request(d.rules[strict]))
	}
	return requests
}

func (d *duel) note(format string, values ...any) {
	d.history += fmt.Sprintf(format, values...) + "\n"
}

// step makes a random call, or lets time pass.
func (d *duel) step() {
	switch d.random.IntN(12) {
	case 0, 1, 2:
		d.note("at %d ms", d.now.Add(d.random.Int64N(8000)*int64(time.Millisecond))/1e6)
		return
	case 3, 4, 5:
		d.peekAndTake(weir.Call{Op: weir.OpTake, Requests: d.requests()})
	case 6:
		d.both(weir.Call{Op: weir.OpTakeUpTo, Requests: d.requests(), Most: d.random.Int64N(5)})
	case 7, 8:
		d.both(weir.Call{Op: weir.OpReserve, Requests: d.requests()})
	case 9:
		d.settle()
	case 10:
		d.each()
	default:
		op := []weir.Op{weir.OpRecord, weir.OpReturn, weir.OpReset}[d.random.IntN(3)]
		call := weir.Call{Op: op, Requests: d.requests()}
		got, err := d.layered.Do(context.Background(), call)
		call.Requests = withoutOtherwise(call.Requests)
		want, wantErr := d.model.engine.Do(context.Background(), call)
		d.same(call, got, err, want, wantErr)
	}
	d.compareStates()
}

// peekAndTake takes what a peek says.
func (d *duel) peekAndTake(call weir.Call) {
	peek := call
	peek.Op = weir.OpPeek
	said, err := d.layered.Do(context.Background(), peek)
	a := d.both(call)
	if err != nil || a.Decision.BanBegun || d.striking(call.Requests) {
		return
	}
	if took := a.Decision.Allowed; said.Decision.Allowed != took || !slices.Equal(said.Paid, a.Paid) || !took && said.Decision != a.Decision {
		d.Errorf("peek says %+v, and take %+v", said, a)
	}
	if r := a.Decision.RetryAfter; r > 0 && r != weir.Never {
		d.retry(peek, r)
	}
}

// retry peeks when RetryAfter has passed, and just before.
func (d *duel) retry(peek weir.Call, after time.Duration) {
	replaceable := 0
	for _, q := range peek.Requests {
		if q.Otherwise != nil {
			replaceable++
		}
	}
	defer d.now.Store(d.now.Load())
	d.now.Add(int64(after))
	if a, err := d.layered.Do(context.Background(), peek); err != nil || !a.Decision.Allowed {
		d.Errorf("%s: refused after the RetryAfter of %v: %+v (%v)", textOf(peek.Requests), after, a.Decision, err)
	}
	d.now.Add(-int64(time.Millisecond))
	a, err := d.layered.Do(context.Background(), peek)
	if d.met["tried again"]++; replaceable < 2 && (err != nil || a.Decision.Allowed) {
		d.Errorf("%s: admitted before the RetryAfter of %v: %+v (%v)", textOf(peek.Requests), after, a.Decision, err)
	}
}

// striking reports whether a refusal may begin a ban, which a peek does not foresee.
func (d *duel) striking(requests []weir.Request) bool {
	return slices.ContainsFunc(weir.Kit.Links(requests), func(q weir.Request) bool { return q.Rule.Name() == "strict" })
}

// both makes a call by the layer and by the model.
func (d *duel) both(call weir.Call) weir.Answer {
	got, err := d.layered.Do(context.Background(), call)
	want, wantErr := d.model.make(call)
	d.same(call, got, err, want, wantErr)
	if err == nil && got.Reservation != nil && got.Decision.Allowed && want.Reservation != nil {
		if d.open = append(d.open, [2]*weir.Reservation{got.Reservation, want.Reservation}); got.Paid != nil {
			d.met["reserved by another"]++
		}
	}
	return got
}

func (d *duel) each() {
	var calls []weir.Call
	for range 1 + d.random.IntN(4) {
		calls = append(calls, weir.Call{Op: []weir.Op{weir.OpTake, weir.OpTake, weir.OpPeek}[d.random.IntN(3)], Requests: d.requests()})
	}
	results := make([]weir.Result, len(calls))
	err := d.layered.Each(context.Background(), calls, results)
	for i, want := range d.model.each(calls) {
		r := results[i]
		if err != nil {
			r.Err = err
		}
		d.same(calls[i], weir.Answer{Decision: r.Decision, Paid: r.Paid}, r.Err, weir.Answer{Decision: want.Decision, Paid: want.Paid}, want.Err)
	}
}

// settle ends a reservation in one of its ways.
func (d *duel) settle() {
	if len(d.open) == 0 {
		return
	}
	i := d.random.IntN(len(d.open))
	both := d.open[i]
	d.open = append(d.open[:i], d.open[i+1:]...)
	how, actual := d.random.IntN(3), d.random.Int64N(5)
	d.note("settle %d with %d", how, actual)
	var errs [2]error
	for i, r := range both {
		switch how {
		case 0:
			errs[i] = r.Done(context.Background())
		case 1:
			errs[i] = r.Cancel(context.Background())
		default:
			errs[i] = r.Settle(context.Background(), actual)
		}
	}
	if d.met["settled"]++; (errs[0] == nil) != (errs[1] == nil) {
		d.Errorf("settled with error %v, want %v", errs[0], errs[1])
	}
}

// same compares two answers.
func (d *duel) same(call weir.Call, got weir.Answer, err error, want weir.Answer, wantErr error) {
	d.Helper()
	d.note("%v of %s, most %d: %+v (%v)", call.Op, textOf(call.Requests), call.Most, got.Decision, err)
	switch {
	case (err == nil) != (wantErr == nil):
		d.Errorf("%v of %s: got error %v, want %v", call.Op, textOf(call.Requests), err, wantErr)
	case err != nil:
		return
	case got.Decision != want.Decision || got.Times != want.Times || !slices.Equal(got.Paid, want.Paid):
		d.Errorf("%v of %s: got\n%+v times %d paid %s, want\n%+v times %d paid %s", call.Op, textOf(call.Requests), got.Decision, got.Times, textOf(got.Paid), want.Decision, want.Times, textOf(want.Paid))
	case got.Reservation != nil && got.Reservation.Decision != got.Decision:
		d.Errorf("the reservation of %v says %+v", call.Op, got.Reservation.Decision)
	}
	d.count(call, got)
}

// count notes what a call has met.
func (d *duel) count(call weir.Call, a weir.Answer) {
	switch {
	case call.Op >= weir.OpRecord && call.Op <= weir.OpReset:
	case a.Times > 1:
		d.met["some times"]++
	case !a.Decision.Allowed && a.Decision.Cause == weir.ByBan:
		d.met["banned"]++
	case !a.Decision.Allowed && a.Decision.RetryAfter == weir.Never:
		d.met["never"]++
	case !a.Decision.Allowed:
		d.met["refused"]++
	case a.Paid == nil:
		d.met["paid by the first"]++
	default:
		d.countPaid(call, a)
	}
	if !a.Decision.Allowed && a.Decision.Rule == "blocked" {
		d.met["denied"]++
	}
}

func (d *duel) countPaid(call weir.Call, a weir.Answer) {
	for i, paid := range a.Paid {
		link := 0
		for q := &call.Requests[i]; q.Rule != paid.Rule || q.Key != paid.Key; q = q.Otherwise {
			link++
		}
		d.met[fmt.Sprint("paid by link ", link)]++
		for _, other := range a.Paid[:i] {
			if other.Rule == paid.Rule && other.Key == paid.Key {
				d.met["two pay to one"]++
			}
		}
	}
}

// compareStates compares what is left of every key.
func (d *duel) compareStates() {
	d.Helper()
	var calls []weir.Call
	for _, r := range d.rules {
		for _, key := range []string{"a", "b", "all"} {
			calls = append(calls, weir.Call{Op: weir.OpPeek, Requests: []weir.Request{r.For(key, 1)}})
		}
	}
	got, want := make([]weir.Result, len(calls)), make([]weir.Result, len(calls))
	if err := d.layered.Each(context.Background(), calls, got); err != nil {
		d.Fatal(err)
	}
	if err := d.model.engine.Each(context.Background(), calls, want); err != nil {
		d.Fatal(err)
	}
	for i := range calls {
		if got[i].Err != nil || got[i].Decision != want[i].Decision {
			d.Errorf("%s is %+v (%v), want %+v", textOf(calls[i].Requests), got[i].Decision, got[i].Err, want[i].Decision)
		}
	}
}

// textOf names requests and those in their places.
func textOf(requests []weir.Request) (text string) {
	for i := range requests {
		if i > 0 {
			text += ", "
		}
		for q := &requests[i]; q != nil; q = q.Otherwise {
			if q != &requests[i] {
				text += " or "
			}
			text += fmt.Sprintf("%d of %s %s", q.Cost, q.Rule.Name(), q.Key)
		}
	}
	return text
}
