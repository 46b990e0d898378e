package pace

import (
	"container/list"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/line"
)

// Queue lets callers of this process wait for an engine: for one limit or several, of one key or several, here or on
// other machines.
//
// One key whose rule can be booked ([weir.Rule.Bookable]), on an engine that books ([weir.AheadTaker]), takes one call a
// grant: each caller books its instant and sleeps once. Callers of all processes go in the order in which the engine
// saw them, as long as none leaves.
//
// Callers that acquire slots stand in one line with those of all processes, if the engine keeps one
// ([weir.LineKeeper]).
//
// Other callers ask. Those that ask for the same keys go in order of arrival. Only the first of them asks the engine,
// for itself and for those behind it, and it sleeps for the time that the engine names: a thousand waiting callers cost
// about two calls a grant, and no polling. Callers that ask for different keys do not wait for each other. Callers of
// other processes, and callers of the engine's own Take, compete with them; the limits hold in any case.
//
// Nothing is taken before all requests of a caller are admitted at one instant. A Queue is safe for concurrent use.
type Queue struct {
	engine   weir.Engine
	capacity int

	mu      sync.Mutex
	lines   map[string]*queueLine   // by the keys of the requests
	bySlots map[string][]*queueLine // lines that ask for slots, by the key of the slots
	joint   map[string]int          // lines that ask for several keys, by each of them
	booked  map[weir.Request]*bookedLine
	local   *local // for the memory engine, otherwise nil

	background background // what callers left is given back

	// For Stats.
	all     list.List // of *place: the waiting callers, oldest first
	counts  QueueCounts
	byRule  map[string]*QueueCounts
	observe func(Waited)
	waiting int
	arrived uint64 // places so far
}

// QueueOptions configure a Queue. A zero field has its default.
type QueueOptions struct {
	// Queue bounds the waiting callers. Default: 65536.
	Queue int
	// Observe is called with what became of each caller, on the goroutine of that caller. Default: nothing.
	Observe func(Waited)
}

const defaultQueue = 1 << 16

// NewQueue returns a queue for the engine. A negative bound is a *weir.OptionError.
func NewQueue(engine weir.Engine, options QueueOptions) (*Queue, error) {
	if options.Queue < 0 {
		return nil, &weir.OptionError{Op: "new queue", Field: "queue", Reason: "is negative"}
	}
	q := &Queue{engine: engine, capacity: options.Queue, lines: map[string]*queueLine{}, bySlots: map[string][]*queueLine{},
		joint: map[string]int{}, booked: map[weir.Request]*bookedLine{}, byRule: map[string]*QueueCounts{}, observe: options.Observe}
	if q.capacity == 0 {
		q.capacity = defaultQueue
	}
	if memory, ok := engine.(*weir.Memory); ok {
		q.local = newLocal(q, memory)
	}
	return q, nil
}

// Wait waits until the engine admits all requests, and takes them. The units of a rate stay spent; a Concurrency
// needs Acquire.
//
// If ctx ends before the caller's turn, nothing is taken and the error wraps that of the context. If the context's
// deadline is before the instant that the engine names, Wait returns a *weir.WaitError at once. A cost above the
// capacity is a *weir.CostError, and a full queue is weir.ErrQueueFull. Other errors are those of the engine.
func (q *Queue) Wait(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return q.take(ctx, &place{requests: requests, turn: make(chan turn, 1)})
}

func (q *Queue) take(ctx context.Context, p *place) (weir.Decision, error) {
	q.begins(p)
	err := q.wait(ctx, p)
	if err == nil {
		if err = line.HoldBack(ctx, p.decision.Delay); err != nil {
			q.giveBack(ctx, 1, p.requests)
		}
	}
	q.ends(p, err)
	if err != nil {
		return weir.Decision{}, err
	}
	return p.decision, nil
}

// Acquire works like Wait and returns a reservation of what was taken. Its Done releases the slots of a Concurrency
// and leaves the other units spent; Cancel gives everything back. A caller that waits for slots asks again when they
// are released, at the latest after a second; it is not refused because of a lease, which may end early.
func (q *Queue) Acquire(ctx context.Context, requests ...weir.Request) (*Acquired, error) {
	return q.acquire(ctx, &place{requests: requests, turn: make(chan turn, 1), acquires: true})
}

func (q *Queue) acquire(ctx context.Context, p *place) (*Acquired, error) {
	q.begins(p)
	err := q.wait(ctx, p)
	q.ends(p, err)
	if err != nil {
		return nil, err
	}
	return &Acquired{p.reservation, q, q.keysToReturn(p.requests)}, nil
}

// Waiting returns the number of waiting callers.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

func (q *Queue) wait(ctx context.Context, p *place) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.cost() <= 0 { // admitted, or wrong
		return p.takeNow(ctx, q.engine)
	}
	q.mu.Lock()
	if q.waiting >= q.capacity {
		q.mu.Unlock()
		return weir.ErrQueueFull
	}
	q.arrived++
	p.arrival = q.arrived
	if q.books(p.requests, p.flow) && q.lines[keyOf(&p.requests[0])] == nil {
		q.waiting++
		q.mu.Unlock()
		return q.waitBooked(ctx, p)
	}
	if place := q.inEngine(p); place != nil {
		q.waiting++
		q.mu.Unlock()
		return q.waitInEngine(ctx, p, place)
	}
	q.mu.Unlock()
	if q.local != nil {
		return q.local.wait(ctx, p)
	}
	return q.waitInLine(ctx, p)
}

// waitInLine waits in the line of p's keys. A line that can book at last gives p an instant to wait for.
func (q *Queue) waitInLine(ctx context.Context, p *place) error {
	if err := q.askInLine(ctx, p); err != nil || p.booked.reservation == nil {
		return err
	}
	q.mu.Lock()
	q.waiting++
	q.mu.Unlock()
	return q.sleepBooked(ctx, p)
}

func (q *Queue) askInLine(ctx context.Context, p *place) error {
	if err := q.join(ctx, p); err != nil {
		return err
	}
	return q.await(ctx, p)
}

// follow does what the turn says: go ahead, or ask for the line.
func (q *Queue) follow(ctx context.Context, p *place, t turn) error {
	if t == granted {
		return nil
	}
	err := p.line.ask(ctx, p)
	if err == errOvertaken {
		return q.await(ctx, p)
	}
	q.passOn(p)
	return err
}

// await waits for p's turn in its line.
func (q *Queue) await(ctx context.Context, p *place) error {
	select {
	case t := <-p.turn:
		return q.follow(ctx, p, t)
	case <-ctx.Done():
		return q.leave(ctx, p)
	}
}

// join adds p to the line of its keys. The first of a line has its turn at once.
func (q *Queue) join(ctx context.Context, p *place) error {
	keys := keysOf(p.requests)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting >= q.capacity {
		return weir.ErrQueueFull
	}
	l := q.lines[keys]
	if l == nil {
		l = q.newLine(keys, p.requests)
	}
	if err := l.tooLate(ctx, p); err != nil {
		return err
	}
	if l.places.length == 0 {
		l.add(p)
		p.turn <- lead
		return nil
	}
	before := l.first()
	l.add(p)
	if l.first() == p && !slices.Equal(p.requests, before.requests) { // the engine may admit p earlier
		l.wakeUp()
	}
	return nil
}

func (q *Queue) newLine(keys string, requests []weir.Request) *queueLine {
	l := &queueLine{queue: q, keys: keys, slots: slotKeys(requests), wake: make(chan struct{}, 1)}
	q.lines[keys] = l
	for _, key := range l.slots {
		q.bySlots[key] = append(q.bySlots[key], l)
	}
	l.joint = jointKeys(requests)
	for _, key := range l.joint {
		q.joint[key]++
	}
	return l
}

func (q *Queue) removeLine(l *queueLine) {
	delete(q.lines, l.keys)
	for _, key := range l.joint {
		if q.joint[key]--; q.joint[key] == 0 {
			delete(q.joint, key)
		}
	}
	for _, key := range l.slots {
		if q.bySlots[key] = slices.DeleteFunc(q.bySlots[key], func(o *queueLine) bool { return o == l }); len(q.bySlots[key]) == 0 {
			delete(q.bySlots, key)
		}
	}
}

// leave removes p, unless its turn has come meanwhile.
func (q *Queue) leave(ctx context.Context, p *place) error {
	q.mu.Lock()
	select {
	case t := <-p.turn:
		q.mu.Unlock()
		return q.follow(ctx, p, t)
	default:
	}
	p.line.leave(p)
	q.mu.Unlock()
	return ctx.Err()
}

// passOn removes the first place, whose caller has asked, and lets the next one ask.
func (q *Queue) passOn(p *place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := p.line
	l.leave(p)
	if l.places.length > 0 {
		l.notBefore = time.Time{} // the next one may ask for less
		l.first().turn <- lead
		return
	}
	l.leaveEngine()
	q.removeLine(l)
}

// released wakes, for each key of released slots, the caller that has waited longest for it.
func (q *Queue) released(keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		var first *queueLine
		for _, l := range q.bySlots[key] {
			if first == nil || l.first().arrival < first.first().arrival {
				first = l
			}
		}
		if first != nil {
			first.wakeUp()
		}
	}
}

// keysOf returns a text that is equal for requests of the same rules and keys.
func keysOf(requests []weir.Request) string {
	keys := make([]string, len(requests))
	for i := range requests {
		keys[i] = keyOf(&requests[i])
	}
	slices.Sort(keys)
	return strings.Join(keys, "\x00\x00")
}

// keysToReturn returns the keys whose units an Acquired may bring back for other callers: on the memory engine all, and
// elsewhere slots, because other units come back too late to wake a caller for.
func (q *Queue) keysToReturn(requests []weir.Request) []string {
	if q.local != nil {
		return keysIn(requests)
	}
	return slotKeys(requests)
}

// jointKeys returns the keys of several requests.
func jointKeys(requests []weir.Request) (keys []string) {
	if len(requests) < 2 {
		return nil
	}
	return keysIn(requests)
}

// slotKeys returns the keys that ask for slots.
func slotKeys(requests []weir.Request) (keys []string) {
	for i := range requests {
		if asksForSlots(&requests[i]) {
			keys = append(keys, keyOf(&requests[i]))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func keyOf(r *weir.Request) string {
	if r.Rule == nil {
		return r.Key // the engine refuses it
	}
	return r.Rule.Name() + "\x00" + r.Key
}

func asksForSlots(r *weir.Request) bool { return has[weir.Concurrency](r) }

// has reports whether a rule has a limit of type L.
func has[L weir.Limit](r *weir.Request) bool {
	return r.Rule != nil && slices.ContainsFunc(r.Rule.Limits(), func(l weir.Limit) bool { _, is := l.(L); return is })
}

// giveBack gives back what was taken the given number of times. No caller waits for that. If it fails, the units stay
// spent.
func (q *Queue) giveBack(ctx context.Context, times int64, requests []weir.Request) {
	back := slices.Clone(requests)
	for i := range back {
		back[i].Cost *= -times
	}
	q.background.run(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = q.engine.Record(ctx, back...)
	})
}
