package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var reservationAttacks = []attack{
	{"settle", "reservations of slots and units that are renewed, and settled with any costs", (*attacker).settlements},
	{"leavers", "clients that go away while they wait for slots", (*attacker).leavers},
	{"hoard", "reservations and waiting callers with huge keys", (*attacker).hoard},
}

const (
	waitPath    = "/v1/wait"
	reservePath = "/v1/reserve"
	settlePath  = "/v1/settle"
	renewPath   = "/v1/renew"
)

// preySlots is the number of slots of the rules "work" and "mixed", which no flood of keys uses.
const preySlots = 3

// tenant makes reservations of one key of one daemon, over a connection of its own.
type tenant struct {
	*attacker
	client
	d   *daemon
	key string
	// unsure is true if the daemon may hold what the tenants no longer know of.
	unsure *atomic.Bool
	spent  *atomic.Int64 // units of the rule "pipe" that settlements reported
}

func (a *attacker) tenant() *tenant {
	return &tenant{attacker: a, d: a.current.Load(), key: fmt.Sprintf("%s %d", a.name, a.random.Uint64()), unsure: new(atomic.Bool), spent: new(atomic.Int64)}
}

// calm reports whether the daemon must serve every request.
func (t *tenant) calm() bool { return !t.d.stopping.Load() && t.world.crowd.Load() == 0 }

// post posts a value and reads the answer of status 200 into got. A refusal for want of room, and one of a daemon that
// stops, makes the tenant unsure.
func (t *tenant) post(path string, value, got any) (status int) {
	body, _ := json.Marshal(value)
	calm := t.calm()
	r := t.ask(t.d.address, path, string(body), style{})
	if r.outcome != answered || r.status != http.StatusOK {
		t.unsure.Store(true)
	}
	if r.outcome == answered && r.status == http.StatusOK {
		if err := json.Unmarshal(r.body, got); err != nil {
			t.Break(promiseAnswered, "%s %s: %v", path, body, err)
		}
	} else if calm && t.calm() && r.status != http.StatusServiceUnavailable {
		t.Break(promiseAnswered, "%s %.300s was answered with %d: %.300s %v", path, body, r.status, r.body, r.err)
	}
	t.did("requests", 1)
	return r.status
}

// reservation is an answer of reserve, and what was asked for.
type reservation struct {
	Allowed bool
	Token   string

	requests []request
}

// reserve asks for requests.
func (t *tenant) reserve(patience time.Duration, requests ...request) (r reservation) {
	t.post(reservePath, map[string]any{"requests": requests, "patience": patience.Seconds()}, &r)
	r.requests = requests
	return r
}

// some returns requests for slots of the key and for units beside them. The same rule and key may come several times.
func (t *tenant) some() (requests []request, slots int64) {
	rule := []string{"work", "mixed"}[t.random.IntN(2)]
	for slots == 0 || slots < preySlots && t.random.IntN(2) == 0 {
		cost := 1 + t.random.Int64N(preySlots-slots)
		requests, slots = append(requests, request{rule, t.key, cost}), slots+cost
	}
	for range t.random.IntN(3) {
		requests = append(requests, request{"pipe", t.key, t.random.Int64N(10)})
	}
	t.random.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
	return requests, slots
}

// settle settles in any way that the API has.
func (t *tenant) settle(r reservation) {
	body := map[string]any{"token": r.Token}
	costs := make([]int64, len(r.requests))
	for i, q := range r.requests {
		costs[i] = q.Cost
	}
	switch t.random.IntN(3) {
	case 0:
		for i := range costs {
			costs[i] = t.random.Int64N(20)
		}
		body["costs"] = costs
	case 1:
		cost := t.random.Int64N(4)
		for i := range costs {
			costs[i] = cost
		}
		body["cost"] = cost
	}
	t.post(settlePath, body, new(struct{}))
	for i, q := range r.requests {
		if q.Rule == "pipe" {
			t.spent.Add(costs[i])
		}
	}
}

// settlements has several tenants of one key reserve, work and settle. No more than the slots may be held, all must be
// free at the end, and exactly the reported units must be counted.
func (a *attacker) settlements() {
	for !a.done() {
		first := a.tenant()
		inside := map[string]*atomic.Int64{"work": new(atomic.Int64), "mixed": new(atomic.Int64)}
		var tenants sync.WaitGroup
		for range a.between(2, 8) {
			own := *a
			own.random = rand.New(rand.NewPCG(a.random.Uint64(), 0))
			t := *first
			t.attacker = &own
			tenants.Go(func() {
				defer t.close()
				for range 10 {
					t.work(inside)
				}
			})
		}
		tenants.Wait()
		first.audit()
	}
}

// work reserves, holds and settles once.
func (t *tenant) work(inside map[string]*atomic.Int64) {
	requests, slots := t.some()
	r := t.reserve(time.Duration(t.random.IntN(100))*time.Millisecond, requests...)
	if !r.Allowed {
		return
	}
	held := inside["work"]
	for _, q := range requests {
		if q.Rule == "mixed" {
			held = inside["mixed"]
		}
	}
	if n := held.Add(slots); n > preySlots {
		t.Break(promiseBounds, "settle: key %q has %d slots, and clients hold %d", t.key, preySlots, n)
	}
	time.Sleep(time.Duration(t.random.Int64N(int64(5 * time.Millisecond))))
	if t.random.IntN(3) == 0 {
		t.post(renewPath, map[string]any{"token": r.Token}, new(struct{}))
	}
	held.Add(-slots)
	t.settle(r)
}

// audit checks that no slot of the key is held, and that exactly the settled units are counted.
func (t *tenant) audit() {
	if t.unsure.Load() || !t.calm() {
		return
	}
	t.did("audits", 1)
	t.countedWithin("work", t.key, 0, 0)
	t.countedWithin("mixed", t.key, 0, 0)
	t.countedWithin("pipe", t.key, t.spent.Load(), t.spent.Load())
}

// leavers has clients wait for slots that are held, and go away. The slots must then be free, and nothing of the leavers
// counted.
func (a *attacker) leavers() {
	for !a.done() {
		t := a.tenant()
		holder := t.reserve(0, request{"work", t.key, preySlots}, request{"pipe", t.key, t.random.Int64N(10)})
		conns := a.open(a.between(5, 100), func(int) string {
			path := []string{waitPath, reservePath}[t.random.IntN(2)]
			requests := []request{{"work", t.key, 1 + t.random.Int64N(preySlots)}, {"pipe", t.key, t.random.Int64N(10)}}
			body, _ := json.Marshal(map[string]any{"requests": requests, "patience": 1 + t.random.IntN(30)})
			return style{chunked: t.random.IntN(2) == 0}.request("127.0.0.1", path, string(body))
		})
		a.wait(time.Duration(a.between(0, 500)) * time.Millisecond)
		a.leave(conns)
		a.did("leavers", len(conns))
		time.Sleep(aftermath)
		if holder.Allowed {
			t.settle(holder)
		}
		t.audit()
		t.close()
	}
}

// hugeRequests returns requests of up to half a megabyte.
func (t *tenant) hugeRequests(first request) []request {
	requests := []request{first}
	for range t.between(64, 127) {
		key := fmt.Sprint(t.random.Uint64())
		requests = append(requests, request{"prey", key + strings.Repeat("k", t.between(2048, 4096-len(key))), 0})
	}
	return requests
}

// hoard fills the daemon with open reservations and waiting callers, and then leaves.
func (a *attacker) hoard() {
	t := a.tenant()
	defer t.close()
	var held []reservation
	for !a.done() && t.calm() {
		slot := request{"held", fmt.Sprint(t.key, len(held)), preySlots}
		r := t.reserve(0, t.hugeRequests(slot)...)
		if r.Allowed {
			held = append(held, r)
		}
		conns := a.open(a.between(0, 3), func(int) string {
			body, _ := json.Marshal(map[string]any{"requests": t.hugeRequests(slot), "patience": 30})
			return style{}.request("127.0.0.1", waitPath, string(body))
		})
		defer a.leave(conns)
		a.did("waiting callers", len(conns))
	}
	a.did("reservations", len(held))
	for _, r := range held {
		t.post(settlePath, map[string]any{"token": r.Token}, new(struct{}))
	}
	t.d.auditMemory(t.world)
}
