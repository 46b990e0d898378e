package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// subject is a rule that honest clients use with keys of their own.
type subject struct {
	rule, limit string
	clients     int
	most        int64 // largest cost of a request
}

// subjects are rules at odd rates, and one with two limits.
var subjects = []subject{
	{"third", "token bucket 3/s burst 3", 2, 2},
	{"seventh", "token bucket 7/m burst 7", 2, 2},
	{"fast", "token bucket 333/s burst 50", 3, 30},
	{"window", "fixed window 40/3s", 2, 3},
	{"log", "sliding log 29/2s", 2, 2},
	{"two", "token bucket 7/s burst 20 and fixed window 300/1m", 2, 3},
}

func honestRules(engine string) []string {
	rules := append(ledgerRules(engine), poolRule)
	for _, s := range subjects {
		rules = append(rules, s.rule+"="+s.limit)
	}
	return rules
}

// honestPace is the mean pause of an honest client between two requests.
const honestPace = 30 * time.Millisecond

// startHonest starts the honest clients.
func (w *world) startHonest(ctx context.Context, clients *sync.WaitGroup) {
	lane := uint64(0)
	start := func(step func(*worker)) {
		lane++
		k := &worker{world: w, random: rand.New(rand.NewPCG(w.Seed, lane))}
		clients.Go(func() { k.work(ctx, step) })
	}
	for _, s := range subjects {
		for i := range s.clients {
			f := &follower{subject: s, key: fmt.Sprintf("honest %d", i)}
			f.admitted.limits = must(weir.ParseRule(s.rule + "=" + s.limit)).Limits()
			w.followers = append(w.followers, f)
			start(f.step)
		}
	}
	for range 5 {
		start(func(k *worker) { w.ledger.step(k) })
	}
	start(func(k *worker) { w.ledger.look(k) })
	for range 4 {
		start(w.pool.step)
	}
}

// worker is one honest client. With each request it sends one to the idle handler.
type worker struct {
	world  *world
	ctx    context.Context
	random *rand.Rand
	http   client
	idle   client
	last   *daemon
}

func (k *worker) work(ctx context.Context, step func(*worker)) {
	k.ctx = ctx
	defer k.http.close()
	defer k.idle.close()
	for ctx.Err() == nil {
		step(k)
		pause(ctx, time.Duration(k.random.Int64N(int64(2*honestPace))))
	}
}

// restartLoose bounds the difference between the clocks of a daemon and its successor.
const restartLoose = int64(100 * time.Millisecond)

// ask sends a call until it is answered or may have been counted. known is true for an answer.
func (k *worker) ask(path string, requests ...request) (e exchange, known bool) {
	w := k.world
	w.honestly("requests", 1)
	body, waited := bodyOf(requests...), time.Now()
	k.sabotage(path, body)
	for {
		d := w.current.Load()
		e.sent = w.now()
		r := k.exchange(d, path, body)
		e.received = w.now()
		if r.outcome == answered && r.status == http.StatusOK {
			return k.read(e, d, r)
		}
		if w.last.Load() { // the honest clients have ended; an attack asks
			w.honestly("requests", -1)
			return e, false
		}
		if !k.mayAskAgain(d, path, r) {
			return e, false
		}
		if time.Since(waited) > patience {
			w.Break(promiseAnswered, "%s %s: no daemon answered for %v, the last one, daemon %d, with %d %v", path, body, patience, d.number, r.status, r.err)
			return e, false
		}
		pause(context.Background(), 20*time.Millisecond)
	}
}

// mayAskAgain reports whether a request was certainly not counted, for a reason that an honest client must accept.
func (k *worker) mayAskAgain(d *daemon, path string, r reply) bool {
	w, crowded, stopping := k.world, k.world.crowd.Load() > 0, d.stopping.Load()
	switch {
	case r.outcome == notSent && stopping:
		return true // until the next daemon listens
	case r.refusedWith(http.StatusServiceUnavailable) && crowded && r.fresh:
		w.honestly("refused for want of connections", 1)
		return true
	case r.refusedWith(http.StatusRequestTimeout) && (crowded || stopping):
		w.honestly("sent to another connection", 1)
		return true
	case r.outcome == unanswered && r.fresh && stopping: // the listener was closed before the daemon accepted the connection
		w.honestly("reset while a daemon stopped", 1)
	case r.outcome == answered:
		w.Break(promiseAnswered, "%s was answered with %d: %.300s", path, r.status, r.body)
	default:
		w.Break(promiseAnswered, "%s: daemon %d (stopping: %v), a new connection: %v, after %v: %v", path, d.number, stopping, r.fresh, r.took().Round(time.Millisecond), r.err)
	}
	return false
}

// refusedWith reports whether the daemon refused the request with the status, and said that it counted nothing.
func (r *reply) refusedWith(status int) bool {
	var problem struct {
		Counted string `json:"counted"`
	}
	return r.outcome == answered && r.status == status && json.Unmarshal(r.body, &problem) == nil && problem.Counted == "no"
}

// exchange sends the same request to the daemon and to the idle handler at the same time, and compares the times.
func (k *worker) exchange(d *daemon, path, body string) reply {
	how := style{fresh: k.random.IntN(10) == 0, chunked: k.random.IntN(8) == 0, large: k.random.IntN(40) == 0}
	idle := make(chan reply, 1)
	go func() { idle <- k.idle.ask(k.world.idle.address, path, body, how) }()
	r := k.http.ask(d.address, path, body, how)
	if k.broken(delay) {
		r.ended = r.ended.Add(2 * k.world.late)
	}
	control := <-idle
	switch late := r.took() - control.took(); {
	case control.outcome != answered:
		k.world.Break(promiseOnTime, "the idle handler did not answer, so nothing can be compared: %v", control.err)
	case r.outcome != answered: // lost, or no daemon; not late
	default:
		what := fmt.Sprintf("%s took %v where an idle handler took %v, %s", path, short(r.took()), short(control.took()), how.text(r.fresh))
		k.world.timed(r.took(), control.took(), what)
		if late > k.world.late {
			k.world.Break(promiseOnTime, "%s: %s", what, body)
		}
	}
	return r
}

func (k *worker) read(e exchange, d *daemon, r reply) (exchange, bool) {
	var err error
	if e.answer, err = readAnswer(r.body); err != nil {
		k.world.Break(promiseAnswered, "%v", err)
		return e, false
	}
	if k.last != d && k.last != nil {
		e.loose = restartLoose
	}
	k.last = d
	what := "refused"
	if e.answer.Allowed {
		what = "admitted"
	}
	k.world.honestly(what, 1)
	return e, true
}

// broken reports whether to commit the fault now.
func (k *worker) broken(f string) bool { return k.world.Fault == f && k.random.IntN(20) == 0 }

// sabotage commits the faults of a second client.
func (k *worker) sabotage(path, body string) {
	var other client
	defer other.close()
	address := k.world.current.Load().address
	if path == takePath && k.broken(countTwice) {
		other.ask(address, takePath, body, style{})
	}
	if path == takePath && k.broken(mint) {
		other.ask(address, returnPath, body, style{})
	}
}

const (
	takePath   = "/v1/take"
	peekPath   = "/v1/peek"
	recordPath = "/v1/record"
	returnPath = "/v1/return"
)

// follower uses a key that no other client uses. It checks that the key keeps its bounds and its word about retries.
type follower struct {
	subject
	key string
	admitted
	due     int64 // when the last refusal said to retry; 0 without one
	dueCost int64
	// The last refusal that the daemon may repeat to larger costs, which says when this cost can be retried, and not when they can.
	refusedCost, refusedTill int64
}

func (f *follower) step(k *worker) {
	cost := 1 + k.random.Int64N(f.most)
	if f.due > 0 {
		cost = f.dueCost
	}
	e, known := k.ask(takePath, request{f.rule, f.key, cost})
	e.cost = cost
	due := f.due
	f.due = 0
	if !known {
		return
	}
	f.admitted.add(e)
	if due > 0 && e.sent >= due && e.loose == 0 && !e.answer.Allowed {
		k.world.Break(promiseBounds, "%s, key %q, cost %d: the daemon refused a retry at its own retry_after; the answer was %+v", f.rule, f.key, cost, e.answer)
	}
	if e.answer.Allowed || cost > f.refusedCost && e.sent < f.refusedTill {
		return
	}
	f.refusedCost, f.refusedTill = cost, e.received+e.answer.RetryAfter
	if k.random.IntN(2) == 0 {
		f.comeBack(k, e)
	}
}

// comeBack waits for the retry_after of a refusal.
func (f *follower) comeBack(k *worker, e exchange) {
	if e.answer.RetryAfter > int64(time.Minute) {
		return
	}
	f.due, f.dueCost = e.received+e.answer.RetryAfter, e.cost
	pause(k.ctx, time.Duration(f.due-k.world.now()))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err) // rules of the program are constants
	}
	return value
}
