package redislimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// batching makes the same decisions on two engines: on one in calls of several, on the other each in a call of its own.
type batching struct {
	*testing.T
	random  *rand.Rand
	now     int64 // us
	engines [2]*Engine
	rules   []*weir.Rule
	made    [2][]wire.Decision // admitted takes and bookings, on each engine
	history string
}

var batchRules = []string{
	"rate gate 5/2s",
	"rate gate 3/1s",
	"rate gate 4000/90m",
	"sliding log 5/2s",
	"sliding log 4/1s count denied",
	"token bucket 3/1s burst 5",
	"leaky bucket 4/1s queue 6",
	"fixed window 6/2s",
	"sliding window 6/2s",
	"cycle 4/1s",
	"token bucket 5/1s burst 5 and rate gate 6/2s",
	"rate gate 6/2s and cycle 4/1s",
	"concurrency 5 lease 3s",
}

func newBatching(t *testing.T, client rueidis.Client, random *rand.Rand) *batching {
	t.Helper()
	b := &batching{T: t, random: random, now: 1_700_000_000_000_000}
	for i := range b.engines {
		prefix := fmt.Sprintf("weirtest-batch-%x-%d", random.Uint64(), i)
		engine, err := New(client, Options{Prefix: prefix, Clock: func() int64 { return b.now * 1000 }, Linger: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		b.engines[i] = engine
	}
	for i, text := range batchRules {
		rule, err := weir.ParseRule(fmt.Sprintf("r%d=%s", i, text))
		if err != nil {
			t.Fatal(err)
		}
		b.rules = append(b.rules, rule)
	}
	return b
}

// draw returns a decision for each engine. A log that counts denied attempts holds more units than its limit after a call
// of several, so an undo leaves other units there.
func (b *batching) draw(rule *weir.Rule) (pair [2]wire.Decision) {
	cost, ahead, most := 1+b.random.Int64N(3), b.random.Int64N(3_000_000), 1+b.random.Int64N(4)
	verb, back, n := b.random.IntN(8), b.random.IntN(3), 1+b.random.Int64N(3)
	for i, e := range b.engines {
		lease := uint64(0)
		if strings.Contains(rule.String(), "concurrency") {
			lease = uint64(b.now) + uint64(cost)
		}
		parts, at, err := e.parts(nil, []weir.Request{rule.For("k", cost)}, 0)
		if err != nil {
			b.Fatal(err)
		}
		for j := range parts {
			parts[j].Lease = lease
		}
		q := asking(wire.OpTake, 1, parts, at)
		switch made := b.made[i]; {
		case verb == 0:
			q.Op = wire.OpPeek
		case verb == 1:
			q.Op = wire.OpRecord
		case verb == 2 && lease == 0:
			_, times := ofFresh(most, []weir.Request{rule.For("k", cost)})
			q = asking(wire.OpTake, times, parts, at)
		case verb <= 5 && rule.Bookable():
			q.Op, q.Longest = wire.OpBook, ahead
		case verb == 6 && len(made) > back && !strings.Contains(rule.String(), "denied"):
			switch past := &made[len(made)-1-back]; past.Op {
			case wire.OpBook:
				q = past.Withdrawal(min(n, past.Parts[0].Cost))
			default:
				q = past.Undos(1)[0]
				q.Sent = time.Now().Add(time.Hour) // the time that passes is that of the clock
			}
		}
		pair[i] = q
	}
	return pair
}

func (b *batching) ask(e *Engine, decisions []wire.Decision) {
	s := calls.NewSubmission(decisions...)
	if err := e.calls.Ask(context.Background(), s); err != nil {
		b.Fatalf("%v after\n%s", err, b.history)
	}
}

// told is what the caller of a decision sees.
func (b *batching) told(d *wire.Decision) string {
	text := fmt.Sprintf("%v admitted %v due %d times %d error %v", d.Op, d.Admitted, d.Due-b.now, d.Times, d.Err)
	if d.Op == wire.OpUndo || d.Op == wire.OpWithdraw {
		return fmt.Sprintf("%v of %d at %d error %v", d.Op, d.Parts[0].Cost, max(d.Now, d.Due), d.Err)
	}
	for i := range d.Parts {
		text += fmt.Sprintf(" %+v", d.Parts[i].Measure)
	}
	return text
}

// round makes up to six decisions.
func (b *batching) round(rule *weir.Rule) {
	b.now += b.random.Int64N(3) * b.random.Int64N(600_000)
	var lists [2][]wire.Decision
	for range 1 + b.random.IntN(6) {
		pair := b.draw(rule)
		lists[0], lists[1] = append(lists[0], pair[0]), append(lists[1], pair[1])
	}
	b.ask(b.engines[0], lists[0])
	b.history += fmt.Sprintf("at %d\n", b.now)
	for i := range lists[1] {
		b.ask(b.engines[1], lists[1][i:i+1])
		together, alone := b.told(&lists[0][i]), b.told(&lists[1][i])
		b.history += "  " + alone + "\n"
		if together != alone {
			b.Fatalf("%v: decision %d of a call:\n%s\nalone:\n%s\nafter\n%s", rule, i, together, alone, b.history)
		}
	}
	for i := range lists {
		for _, d := range lists[i] {
			if d.Admitted && (d.Op == wire.OpTake || d.Op == wire.OpBook) {
				b.made[i] = append(b.made[i], d)
			}
		}
	}
}

// Callers that share a call of the script do not change each other's answers.
func TestDecisionsOfACallAreMadeOneAfterTheOther(t *testing.T) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{redistest.Start(t).Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	for range 6 {
		b := newBatching(t, client, random)
		for _, rule := range b.rules {
			b.history, b.made = "", [2][]wire.Decision{}
			for range 25 {
				b.round(rule)
			}
		}
	}
}
