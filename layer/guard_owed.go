package layer

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// owed holds the work for the engine when it is back: units that were granted here, by key, and settlements in order.
// One goroutine sends them while there are any.
type owed struct {
	guard *Guarded

	mu      sync.Mutex
	debts   map[debtor]*debt
	queue   []job
	working bool
	closed  bool
	end     chan struct{}
}

// The bounds of owed.
const (
	mostJobs  = 10_000      // settlements
	batchOf   = 128         // calls of a batch
	batchTime = time.Second // time for a batch
)

// debtor names a key under a rule and its limits.
type debtor struct{ rule, key string }

// debt is the units that the keys of a rule were granted here.
type debt struct {
	request  weir.Request
	peers    int64     // the number of peers that the buckets refill by
	portions []portion // of each limit
}

// portion is the units granted under one limit that the limit has not refilled. Its meaning depends on the limit.
type portion struct {
	at    int64 // when a bucket will be full again, the number of a window, its start if each key has its own, or the time of the last entry of a log
	units int64
}

// job is a call that settles something at the engine.
type job struct {
	call weir.Call
	at   time.Time // when it was settled
}

func (o *owed) init(g *Guarded) {
	o.guard, o.debts, o.end = g, map[debtor]*debt{}, make(chan struct{})
}

func (o *owed) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		close(o.end)
	}
}

// add notes the units of a call that was granted here n times. A negative n gives them back.
func (o *owed) add(call weir.Call, n int64) {
	now, peers := o.guard.clock.now(), int64(o.guard.local.number())
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, q := range call.Requests {
		cost := scaled(q.Cost, max(n, -n), 1)
		name := debtor{q.Rule.String(), q.Key}
		d := o.debts[name]
		if cost == 0 || d == nil && n < 0 {
			continue
		}
		if d == nil && len(o.debts) >= o.guard.options.MaxKeys && !o.sweep(now, peers) {
			o.guard.counts.lost.Add(uint64(cost))
			continue
		}
		if d == nil {
			d = &debt{q, peers, make([]portion, len(factsOf(q.Rule).limits))}
			o.debts[name] = d
		}
		if taken := now; n > 0 {
			d.add(cost, now, peers)
		} else {
			if i < len(call.Taken) {
				taken = time.Unix(0, call.Taken[i])
			}
			d.giveBack(cost, taken, now, peers)
		}
	}
	o.work()
}

// divide has the buckets refill for another number of processes. The units stay.
func (d *debt) divide(now time.Time, peers int64) {
	if d.peers == peers {
		return
	}
	for i, l := range factsOf(d.request.Rule).limits {
		if p := &d.portions[i]; l.refill == weir.RefillRate {
			l.lapse(p, now)
			p.at = now.UnixNano() + min(scaled(p.at-now.UnixNano(), peers, d.peers), math.MaxInt64-now.UnixNano())
		}
	}
	d.peers = peers
}

// add adds units to each portion.
func (d *debt) add(cost int64, now time.Time, peers int64) {
	d.divide(now, peers)
	limits := factsOf(d.request.Rule).limits
	for i := range limits {
		l, p := &limits[i], &d.portions[i]
		if l.lapse(p, now); l.refill == weir.RefillRate {
			p.at += min(scaled(cost, l.periodOf(peers), l.count), math.MaxInt64-p.at)
		} else {
			p.units += min(cost, math.MaxInt64-p.units)
		}
	}
}

// giveBack takes units off each portion where they still count.
func (d *debt) giveBack(cost int64, taken, now time.Time, peers int64) {
	d.divide(now, peers)
	limits := factsOf(d.request.Rule).limits
	for i := range limits {
		l, p := &limits[i], &d.portions[i]
		switch l.lapse(p, now); {
		case l.refill == weir.RefillRate:
			p.at = max(p.at-scaled(cost, l.periodOf(peers), l.count), now.UnixNano())
		case l.refill == weir.RefillWindow && !l.counts(p, taken, now), l.refill == weir.RefillEach && now.Sub(taken) >= l.period:
		default:
			p.units = max(p.units-cost, 0)
		}
	}
}

// sweep forgets a debt whose units have been refilled, if it finds one soon.
func (o *owed) sweep(now time.Time, peers int64) bool {
	looked := 0
	for name, d := range o.debts {
		if len(d.calls(now, peers)) == 0 {
			delete(o.debts, name)
			return true
		}
		if looked++; looked > 8 {
			break
		}
	}
	return false
}

// periodOf returns how long the bucket of one of several processes takes to refill the count: see
// weir.EngineKit.EqualShare.
func (l *limit) periodOf(peers int64) int64 { return scaled(int64(l.period), peers, 1) }

// lapse subtracts the units that the limit has refilled.
func (l *limit) lapse(p *portion, now time.Time) {
	switch at := now.UnixNano(); l.refill {
	case weir.RefillRate:
		p.at = max(p.at, at)
	case weir.RefillWindow:
		if l.own {
			l.lapseOwn(p, at)
		} else if at = l.index(now); at != p.at {
			*p = portion{at: at}
		}
	case weir.RefillEach:
		if at-p.at >= int64(l.period) {
			p.units = 0
		}
		p.at, p.units = at, min(p.units, l.capacity)
	}
}

// lapseOwn ends a window that began with the first unit of the portion. The next unit begins another.
func (l *limit) lapseOwn(p *portion, now int64) {
	if p.units == 0 || now-p.at >= int64(l.period) {
		*p = portion{at: now}
	}
}

// counts reports whether units that were taken at an instant belong to the window of a portion, as of now.
func (l *limit) counts(p *portion, taken, now time.Time) bool {
	if l.own {
		return taken.UnixNano() >= p.at
	}
	return l.index(taken) == l.index(now)
}

// amount returns the units of a portion.
func (l *limit) amount(p *portion, now time.Time, peers int64) int64 {
	l.lapse(p, now)
	switch l.refill {
	case weir.RefillRate:
		left, period := p.at-now.UnixNano(), l.periodOf(peers)
		units := scaled(left, l.count, period)
		if scaled(units, period, l.count) < left {
			units++
		}
		return units
	case weir.RefillWindow, weir.RefillEach:
		return p.units
	}
	return 0
}

// calls returns the calls that record a debt. Equal limits get their amounts by rules of the first one, two and so on of
// them: each call corrects an amount by the difference to the calls before.
func (d *debt) calls(now time.Time, peers int64) (calls []weir.Call) {
	d.divide(now, peers)
	f := factsOf(d.request.Rule)
	for _, alike := range f.alike {
		done := int64(0)
		for _, stage := range slices.Backward(alike) {
			q := d.request
			q.Rule, q.Cost = stage.upTo, f.limits[stage.limit].amount(&d.portions[stage.limit], now, peers)-done
			if done += q.Cost; q.Cost > 0 {
				calls = append(calls, weir.Call{Op: weir.OpRecord, Requests: []weir.Request{q}})
			} else if q.Cost < 0 {
				q.Cost *= -1
				calls = append(calls, weir.Call{Op: weir.OpReturn, Requests: []weir.Request{q}})
			}
		}
	}
	return calls
}

// settle queues a settlement. It reports whether there was room.
func (o *owed) settle(call weir.Call) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.queue) >= mostJobs {
		return false
	}
	call = kept(call)
	call.Within = 0
	o.queue = append(o.queue, job{call, o.guard.clock.now()})
	o.work()
	return true
}

// release queues the release of the slots of a call. An identity holds them, so a second release does no harm.
func (o *owed) release(call weir.Call) {
	if slots := slotsOf(call); call.Op != weir.OpRecord && call.Lease != 0 && len(slots.Requests) > 0 {
		o.settle(slots)
	}
}

// work has the goroutine run. The caller holds the lock.
func (o *owed) work() {
	if !o.working && !o.closed && len(o.queue)+len(o.debts) > 0 {
		o.working = true
		go o.run()
	}
}

// run sends what is owed until nothing is left.
func (o *owed) run() {
	pause := time.NewTimer(probeEvery)
	defer pause.Stop()
	for {
		select {
		case <-o.end:
			return
		case <-pause.C:
		}
		if !o.goOn() {
			return
		}
		wait := probeEvery
		switch p := o.guard.breaker.enter(); p {
		case probes:
			o.knock(p)
		case passes:
			if o.send(p) {
				wait = 0
			}
		}
		pause.Reset(wait)
	}
}

// knock checks whether the engine is back, with a key that has debts.
func (o *owed) knock(p pass) {
	o.mu.Lock()
	call := weir.Call{Op: weir.OpPeek}
	if len(o.queue) > 0 {
		call.Requests = slices.Clone(o.queue[0].call.Requests)
	}
	for _, d := range o.debts {
		call.Requests = []weir.Request{d.request}
		break
	}
	o.mu.Unlock()
	for i := range call.Requests {
		call.Requests[i].Cost = 0
	}
	_, _ = o.guard.ask(context.Background(), call, p, o.guard.options.Deadline, o.guard.next)
}

// send sends a batch. It reports whether the engine took it.
func (o *owed) send(p pass) (sent bool) {
	jobs := o.next(o.guard.clock.now())
	if len(jobs) == 0 { // all of it has been refilled
		o.guard.breaker.ended(p, neither, o.guard.changed)
		return true
	}
	calls := make([]weir.Call, len(jobs))
	for i := range jobs {
		calls[i] = jobs[i].call
	}
	batch := &weir.Batch{Calls: calls, Results: make([]weir.Result, len(calls))}
	_, err := o.guard.ask(context.Background(), weir.Call{Op: weir.OpEach, Each: batch}, p, batchTime, o.guard.next)
	sent = err == nil
	for i, r := range batch.Results {
		if r.Err == nil {
			r.Err = err
		}
		sent = o.sent(jobs[i], r) && sent
	}
	return sent
}

// goOn reports whether there is more to do. Otherwise the goroutine ends.
func (o *owed) goOn() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.working = len(o.queue)+len(o.debts) > 0
	return o.working
}

// next removes the next batch. Debts come first, because their units may be given back.
func (o *owed) next(now time.Time) (jobs []job) {
	peers := int64(o.guard.local.number())
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, d := range o.debts {
		if len(jobs) >= batchOf {
			break
		}
		for _, call := range d.calls(now, peers) {
			jobs = append(jobs, job{call, now})
		}
		delete(o.debts, name)
	}
	for len(o.queue) > 0 && len(jobs) < batchOf {
		switch j := o.queue[0]; {
		case j.isForgotten(now):
			o.guard.counts.lost.Add(costOf(j.call))
		case o.guard.lapsed(&j, now):
			jobs = append(jobs, j)
		}
		o.queue = o.queue[1:]
	}
	return jobs
}

// lapsed subtracts from a return the units that the limit has refilled since. It reports whether any are left.
func (g *Guarded) lapsed(j *job, now time.Time) bool {
	age := now.Sub(j.at)
	if j.call.Op != weir.OpReturn || age <= 0 {
		return true
	}
	back := slotsOf(j.call)
	if j.call.Taken != nil {
		back.Taken = make([]int64, len(back.Requests)) // slots have identities
	}
	for i, q := range j.call.Requests {
		f := factsOf(q.Rule)
		asked := q.Cost
		if q.Rule, q.Cost = f.units, f.outstanding(asked, age, f.sameWindow(j.at, now, j.call.Taken != nil)); q.Rule == nil {
			continue
		}
		g.counts.lost.Add(uint64(asked - q.Cost))
		if q.Cost > 0 {
			back.Requests = append(back.Requests, q)
			if j.call.Taken != nil {
				back.Taken = append(back.Taken, j.call.Taken[i])
			}
		}
	}
	j.call, j.at = back, now
	return len(back.Requests) > 0
}

// sent notes the result of a call of a batch. It reports whether the engine took it.
func (o *owed) sent(j job, r weir.Result) bool {
	g, cost := o.guard, costOf(j.call)
	again := isAfter(&j.call) && j.call.Identity != "" // the engine recognises it
	switch {
	case r.Err == nil && r.Decision.Unrecorded:
		o.squeeze(j.call, cost)
	case r.Err == nil && j.call.Op == weir.OpRecord:
		g.counts.recorded.Add(cost)
	case r.Err == nil:
	case !ofRequest(r.Err) && (again || weir.WasCounted(r.Err) == weir.CountedNo):
		o.mu.Lock()
		o.queue = append(o.queue, j)
		o.mu.Unlock()
		return false
	default:
		g.counts.lost.Add(cost)
	}
	return true
}

// squeeze records as much of a cost as fits, for a limit that cannot record all of it.
func (o *owed) squeeze(call weir.Call, cost uint64) {
	q := call.Requests[0]
	q.Cost = 1
	up := weir.Call{Op: weir.OpTakeUpTo, Most: int64(cost), Requests: []weir.Request{q}}
	kept := uint64(0)
	if a, err := o.guard.ask(context.Background(), up, passes, batchTime, o.guard.next); err == nil {
		kept = uint64(a.Times)
	}
	o.guard.counts.recorded.Add(kept)
	o.guard.counts.lost.Add(cost - kept)
}
