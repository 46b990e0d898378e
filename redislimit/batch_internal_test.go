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
	"github.com/weirflow/weir/internal/redistest"
)

// batching makes the same decisions on two engines: on one in calls of several, on the other each in a call of its own.
type batching struct {
	*testing.T
	random  *rand.Rand
	now     int64 // us
	engines [2]*Engine
	rules   []*weir.Rule
	made    [2][]decision // admitted takes and bookings, on each engine
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
func (b *batching) draw(rule *weir.Rule) (pair [2]decision) {
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
			parts[j].lease = lease
		}
		q := asking(opTake, 1, parts, at)
		switch made := b.made[i]; {
		case verb == 0:
			q.op = opPeek
		case verb == 1:
			q.op = opRecord
		case verb == 2 && lease == 0:
			_, times := ofFresh(most, []weir.Request{rule.For("k", cost)})
			q = asking(opTake, times, parts, at)
		case verb <= 5 && rule.Bookable():
			q.op, q.longest = opBook, ahead
		case verb == 6 && len(made) > back && !strings.Contains(rule.String(), "denied"):
			switch past := &made[len(made)-1-back]; past.op {
			case opBook:
				q = past.withdrawal(min(n, past.parts[0].cost))
			default:
				q = past.undos(1)[0]
				q.sent = time.Now().Add(time.Hour) // the time that passes is that of the clock
			}
		}
		pair[i] = q
	}
	return pair
}

func (b *batching) ask(e *Engine, decisions []decision) {
	s := &submission{done: make(chan struct{}, 1), decisions: decisions}
	if err := e.ask(context.Background(), s); err != nil {
		b.Fatalf("%v after\n%s", err, b.history)
	}
}

// told is what the caller of a decision sees.
func (b *batching) told(d *decision) string {
	text := fmt.Sprintf("%v admitted %v due %d times %d error %v", d.op, d.admitted, d.due-b.now, d.times, d.err)
	if d.op == opUndo || d.op == opWithdraw {
		return fmt.Sprintf("%v of %d at %d error %v", d.op, d.parts[0].cost, max(d.now, d.due), d.err)
	}
	for i := range d.parts {
		text += fmt.Sprintf(" %+v", d.parts[i].measure)
	}
	return text
}

// round makes up to six decisions.
func (b *batching) round(rule *weir.Rule) {
	b.now += b.random.Int64N(3) * b.random.Int64N(600_000)
	var lists [2][]decision
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
			if d.admitted && (d.op == opTake || d.op == opBook) {
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
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 6 {
		b := newBatching(t, client, random)
		for _, rule := range b.rules {
			b.history, b.made = "", [2][]decision{}
			for range 25 {
				b.round(rule)
			}
		}
	}
}
