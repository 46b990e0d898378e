package httplimit

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/httplimit/internal/obey"
	"github.com/weirflow/weir/pace"
)

// pass is an admitted request.
type pass struct {
	gate     *gate
	ticket   obey.Ticket
	acquired *pace.Acquired // nil without rules
	answered bool
	kind     obey.Kind // kind of the answer
	noRetry  bool

	used  atomic.Pointer[obey.Tokens] // what the answer says; nil if it does not
	ended atomic.Bool
	stop  func() bool        // ends the watch on the context; nil without one
	quit  context.CancelFunc // ends the wait for bandwidth; nil without one
}

// end ends the request when its answer has ended. It releases the slots.
func (p *pass) end() {
	if p.stop != nil {
		p.stop()
	}
	p.endOnce()
}

// endOnce runs with the end of the context, too, which may come while stop is set.
func (p *pass) endOnce() {
	if p.ended.Swap(true) {
		return
	}
	p.gate.ended(p.ticket, p.used.Load())
	if p.acquired != nil {
		release(p.acquired.Done)
	}
	if p.quit != nil {
		p.quit()
	}
}

// endWith ends the request with its context, too.
func (p *pass) endWith(ctx context.Context) {
	if ctx.Done() != nil {
		p.stop = context.AfterFunc(ctx, p.endOnce)
	}
}

// releaseWithin bounds a release, which continues after the end of the request.
const releaseWithin = time.Second

// release calls a function of a reservation, which may ask an engine in the network.
func release(settle func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	if err := settle(ctx); err != nil {
		_ = settle(ctx) // the engine repeats it, or its lease ends
	}
}

// lineOf names the requests that wait in one line: those that charge the same keys. It is empty if these are the key
// of the gate.
func lineOf(key string, requests []weir.Request) string {
	if !slices.ContainsFunc(requests, func(q weir.Request) bool { return q.Key != key }) {
		return ""
	}
	var b strings.Builder
	for i := range requests {
		b.WriteString(requests[i].Rule.Name())
		b.WriteByte(0)
		b.WriteString(requests[i].Key)
		b.WriteByte(0)
	}
	return b.String()
}

// wait is one wait of a request.
type wait struct {
	*keeper
	gate      *gate
	request   *http.Request
	ctx       context.Context
	notBefore time.Time // earliest start of a retry
	requests  []weir.Request
	need      obey.Need
	delayed   bool
	reason    Reason
	since     time.Time // since when it waits for the reason
}

// admit waits until the server and all rules admit the request at one instant.
func (w *wait) admit() (*pass, error) {
	asked, err := w.charge()
	if err != nil {
		return nil, err
	}
	defer asked.Done()
	keys := lineOf(w.gate.key, w.requests)
	l := w.gate.join(keys)
	defer w.gate.leave(keys, l)
	w.estimate()
	defer w.done()
	if err := w.sleepUntil(w.notBefore); err != nil {
		return nil, err
	}
	if err := w.turn(l); err != nil {
		return nil, err
	}
	defer func() { l.turn <- struct{}{} }()
	return w.first()
}

// estimate finds what the request needs of the server.
func (w *wait) estimate() {
	if w.Delay != nil {
		w.need.Gap = w.Delay(w.request)
	}
	if w.Tokens != nil {
		w.need.Counted, w.need.Tokens = true, w.Tokens(w.request).bounded()
	}
}

// charge finds what the request costs under the rules.
func (w *wait) charge() (*ask, error) {
	asked, err := w.rules.For(w.request, front.Whole)
	switch {
	case err != nil:
	case asked.Missing != nil:
		err = fmt.Errorf("the limit %q needs a key that the request does not have", asked.Missing.Rule.Name())
	default:
		w.requests = asked.Requests
	}
	if err != nil {
		return nil, w.fail(ReasonRules, err)
	}
	return asked, nil
}

// first waits with the turn of its line.
func (w *wait) first() (*pass, error) {
	for {
		if err := w.awaitServer(); err != nil {
			return nil, err
		}
		acquired, err := w.acquire()
		if err != nil {
			return nil, w.fail(ReasonRules, err)
		}
		ticket, v := w.gate.try(w.need)
		if v.Wait == 0 {
			return &pass{gate: w.gate, ticket: ticket, acquired: acquired}, nil
		}
		if acquired != nil { // the server has said something meanwhile
			release(acquired.Cancel)
		}
	}
}

// awaitServer waits until the server admits a request, by the limits that it has announced.
func (w *wait) awaitServer() error {
	for {
		v, changed := w.gate.look(w.need)
		if v.Wait == 0 {
			return nil
		}
		if err := w.check(v); err != nil {
			return err
		}
		w.delay(Reason(v.Reason), v.Name, v.Wait)
		if err := w.sleep(v.Wait, changed); err != nil {
			return w.fail(Reason(v.Reason), err)
		}
	}
}

// check refuses a wait that is longer than the caller or the options accept.
func (w *wait) check(v obey.Verdict) error {
	if v.Wait == obey.Never {
		return nil
	}
	if asked := v.Reason == obey.Pause || v.Reason == obey.Quota; asked && v.Wait > w.longestPause() {
		return w.fail(Reason(v.Reason), &weir.WaitError{Need: v.Wait, Bound: w.MaxPause})
	}
	if deadline, ok := w.ctx.Deadline(); ok && v.Wait > time.Until(deadline) {
		return w.fail(Reason(v.Reason), &weir.WaitError{Need: v.Wait, Bound: time.Until(deadline), Deadline: true})
	}
	return nil
}

// longestPause returns the longest wait for a server. A pause that is cut to MaxPause has a random time added.
func (k *keeper) longestPause() time.Duration {
	if k.CapPauses {
		return obey.Never
	}
	return k.MaxPause
}

// sleep waits for a time, or until changed is closed. A wait of Never ends only when changed is closed.
func (w *wait) sleep(d time.Duration, changed <-chan struct{}) error {
	var due <-chan time.Time
	if d != obey.Never {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-changed:
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	return nil
}

// turn waits for the turn of a line.
func (w *wait) turn(l *gateLine) error {
	if err := w.ctx.Err(); err != nil {
		return w.fail("", err)
	}
	select {
	case <-l.turn:
		return nil
	default:
	}
	v, _ := w.gate.look(w.need)
	if err := w.check(v); err != nil { // it need not wait in line to know
		return err
	}
	w.delay(ReasonOrder, "", max(v.Wait, 0))
	if w.counters.waiting.Load() > int64(w.MaxWaiting) {
		return w.fail(ReasonOrder, weir.ErrQueueFull)
	}
	select {
	case <-l.turn:
		return nil
	case <-w.ctx.Done():
		return w.fail(ReasonOrder, w.ctx.Err())
	}
}

// acquire takes the costs under the rules.
func (w *wait) acquire() (*pace.Acquired, error) {
	if len(w.requests) == 0 {
		return nil, nil
	}
	w.expect()
	return w.queue.Acquire(w.ctx, w.requests...)
}

// expect notes that the rules may hold the request back. An observer hears of it only if they do, which costs a call of
// the engine.
func (w *wait) expect() {
	if w.Observe == nil {
		w.delay(ReasonRules, "", 0)
		return
	}
	d, err := w.Engine.Peek(w.ctx, w.requests...)
	if err == nil && !d.Allowed {
		w.delay(ReasonRules, d.Rule, d.RetryAfter)
	}
}

// sleepUntil waits before a retry if the server did not say how long to wait.
func (w *wait) sleepUntil(at time.Time) error {
	d := time.Until(at)
	if at.IsZero() || d <= 0 {
		return nil
	}
	w.delay(ReasonRetry, "", d)
	if err := w.sleep(d, nil); err != nil {
		return w.fail(ReasonRetry, err)
	}
	return nil
}

func (w *wait) fail(reason Reason, err error) error {
	w.counters.failed.Add(1)
	return &TransportError{Key: w.gate.key, Reason: reason, Err: err}
}

// delay notes that the request waits for a reason.
func (w *wait) delay(reason Reason, name string, d time.Duration) {
	if w.reason == reason {
		return
	}
	w.settle()
	w.reason, w.since = reason, time.Now()
	g := w.gate
	g.mu.Lock()
	if !w.delayed {
		g.waiting++
	}
	if reason != ReasonOrder {
		g.reason, g.until = reason, time.Time{}
		if d != obey.Never {
			g.until = w.since.Add(d)
		}
	}
	g.mu.Unlock()
	if !w.delayed {
		w.delayed = true
		w.counters.waiting.Add(1)
	}
	w.events().tell(w.request, TransportEvent{Kind: EventDelayed, Key: g.key, Reason: reason, Name: name, Wait: d})
}

// asked is about the time that an engine takes to admit a request. A shorter wait is not one for the rules.
const asked = time.Millisecond

// settle counts the time that the request has waited for its reason.
func (w *wait) settle() {
	if w.reason == "" {
		return
	}
	i, waited := slices.Index(reasons[:], w.reason), time.Since(w.since)
	if w.reason = ""; reasons[i] == ReasonRules && waited < asked {
		return
	}
	delayed := &w.counters.delayed[i]
	delayed.requests.Add(1)
	delayed.time.Add(int64(waited))
}

// done ends the wait.
func (w *wait) done() {
	w.settle()
	if !w.delayed {
		return
	}
	w.counters.waiting.Add(-1)
	w.gate.mu.Lock()
	w.gate.waiting--
	w.gate.mu.Unlock()
}
