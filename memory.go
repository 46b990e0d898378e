package weir

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/memory"
)

// Memory is the Engine that keeps its states in this process. It holds every limit that a Rule can hold. It fails
// only for bad requests, for contexts that are done, and with ErrNoRoom, and it blocks only while other decisions are
// in progress. It evicts idle states, which are indistinguishable from new ones.
//
// Memory keeps no keys. It keeps a 64-bit hash of each under a secret seed: the odds that two of 10 million keys
// share a budget are below 3e-6, even if an attacker chooses the keys.
//
// Make it with NewMemory or LoadMemory: the zero Memory refuses everything. It is safe for concurrent use.
type Memory struct {
	engine  *memory.Engine
	maxKeys int

	hearing sync.Mutex
	hearers atomic.Pointer[[]func(requests []Request) bool]
}

var _ Engine = (*Memory)(nil)

// MemoryOptions configure a Memory. The zero value is ready to use.
type MemoryOptions struct {
	// Clock returns the time in nanoseconds since the Unix epoch, and is used unchanged. Default: the wall clock at
	// the start plus the monotonic clock since. The default clock never moves back. It jumps forward to a wall clock
	// that is ahead, and runs at 7/8 speed while it is ahead of the wall clock. See also MonotonicClock.
	Clock func() int64
	// MaxKeys bounds the keys that one limit of a rule remembers, not counting idle ones. Default, and for any value
	// below 1: 10 million. Under most limits a key takes at most 28 bytes, and 12 more for each further limit of
	// the rule or for a fine fraction such as 11/s. Under logs it also takes up to one entry for each unit of the limit. Further keys share states: see Parent. A Concurrency without a Lease refuses
	// them with ErrNoRoom instead.
	MaxKeys int
	// Parent returns a larger key, such as the network of an address. A key without room shares the state of its
	// parent, and a parent without room that of its own parent. Parent returns false if there is none; such keys
	// share states in 256 groups, which no caller can choose. Parent must be fast, safe for concurrent use, and
	// always return the same for one key.
	Parent func(key string) (parent string, ok bool)
	// Logger receives a warning when keys find no room, at most once a minute. Default: no logging.
	Logger *slog.Logger
}

// NewMemory returns an engine without states.
func NewMemory(options MemoryOptions) *Memory {
	m, engineOptions := newMemory(options)
	m.engine = memory.New(engineOptions)
	return m
}

// newMemory returns a Memory without its engine, and the options of the engine.
func newMemory(options MemoryOptions) (*Memory, memory.Options) {
	m := &Memory{maxKeys: keyBound(options.MaxKeys)}
	return m, memory.Options{Clock: clock.New(options.Clock), MaxKeys: m.maxKeys, Parent: options.Parent, Logger: options.Logger}
}

// refusal returns the error of a zero Memory.
func (m *Memory) refusal(op string) error { return notMade(op, "memory", "weir.NewMemory") }

// Do makes one call.
func (m *Memory) Do(ctx context.Context, c Call) (a Answer, err error) {
	if c.Within > 0 { // a decision in memory takes no time
		ctx = context.Background()
	}
	if c.Identity != "" {
		return Answer{}, &RequestError{Op: c.Op.String(), Field: "identity", Reason: "is given, but this engine recognises no repeated decision; it loses no reply either"}
	}
	if err := Kit.CheckTaken(c); err != nil {
		return Answer{}, err
	}
	switch c.Op {
	case OpTake:
		if c.Lease == 0 && !c.spares() {
			err = m.take(ctx, c.Requests, &a.Decision)
			return a, err
		}
		return m.takeLeased(ctx, memory.Take, &c)
	case OpTakeUpTo:
		if problem := compiled.CheckMost(c.Most); problem != nil {
			return a, requestError(opTake, problem)
		}
		return m.takeLeased(ctx, memory.TakeUpTo, &c)
	case OpReserve:
		return Kit.Reserve(ctx, m, c)
	case OpReserveAhead:
		return m.reserveAhead(ctx, c)
	case OpPeek:
		a.Decision, err = m.Peek(ctx, c.Requests...)
	case OpRecord:
		a.Decision, err = m.record(ctx, c.Requests, c.Lease)
	case OpReturn:
		a.Decision, err = m.giveBack(ctx, &c)
	case OpReset:
		err = m.Reset(ctx, c.Requests...)
	case OpEach:
		if c.Each != nil {
			err = m.Each(ctx, c.Each.Calls, c.Each.Results)
		}
	default:
		err = Kit.Unsupported(c.Op, "is unknown")
	}
	return a, err
}

// Take admits the cost of all requests now, or of none.
func (m *Memory) Take(ctx context.Context, requests ...Request) (d Decision, err error) {
	err = m.take(ctx, requests, &d)
	return d, err
}

func (m *Memory) take(ctx context.Context, requests []Request, d *Decision) (err error) {
	if len(requests) == 1 && m.takeOne(ctx, &requests[0], d) || len(requests) > 1 && m.onWords(ctx, memory.Take, requests, d) {
		return nil
	}
	_, *d, err = m.decide(ctx, opTake, memory.Take, requests, 0, 0)
	return err
}

// takeLeased takes requests that can be settled if they have a lease.
func (m *Memory) takeLeased(ctx context.Context, verb memory.Verb, c *Call) (a Answer, err error) {
	var space requestSpace
	merged, err := m.merge(ctx, opTake, c.Requests, c.Lease, space[:0])
	if err != nil {
		return a, err
	}
	for i := range merged {
		merged[i].Spared = c.Waits
	}
	times, answer, err := m.engine.Decide(verb, merged, c.Most)
	a.Times = times
	if a.Decision, err = describe(opTake, merged, &answer, err); err == nil && a.Decision.Allowed && c.Lease != 0 {
		a.Taken = make([]int64, len(c.Requests))
		for i := range c.Requests {
			a.Taken[i] = mergedOf(merged, &c.Requests[i]).Taken
		}
	}
	return a, err
}

// mergedOf returns the merged request that has the rule and the key of q.
func mergedOf(merged []compiled.Request, q *Request) *compiled.Request {
	return &merged[slices.IndexFunc(merged, func(m compiled.Request) bool { return m.Key == q.Key && m.Rule.Name == q.Rule.Name() })]
}

// decide makes a call on the slow path.
func (m *Memory) decide(ctx context.Context, op string, verb memory.Verb, requests []Request, lease uint64, n int64) (times int64, d Decision, err error) {
	var space requestSpace
	merged, err := m.merge(ctx, op, requests, lease, space[:0])
	if err != nil {
		return 0, Decision{}, err
	}
	if op == opReturn {
		for i := range merged {
			merged[i].Cost *= -1
		}
	}
	times, answer, err := m.engine.Decide(verb, merged, n)
	d, err = describe(op, merged, &answer, err)
	return times, d, err
}

// Each makes each call on its own, in order.
func (m *Memory) Each(ctx context.Context, calls []Call, results []Result) error {
	if err := Kit.CheckEach(calls, results); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return cannotDecide(opEach, err)
	}
	for i := range calls {
		c, r := &calls[i], &results[i]
		if r.Err != nil {
			continue
		}
		*r = Result{}
		if c.isPlainTake() && m.takeOne(ctx, &c.Requests[0], &r.Decision) {
			continue
		}
		a, err := m.Do(context.Background(), *c)
		*r = Result{a.Decision, a.Reservation, a.Taken, a.Paid, err}
	}
	return nil
}

// Reserve takes the requests and returns a reservation.
func (m *Memory) Reserve(ctx context.Context, requests ...Request) (*Reservation, error) {
	a, err := Kit.Reserve(ctx, m, Call{Op: OpReserve, Requests: requests})
	return a.Reservation, err
}

// Peek returns the answer that Take would give, without writing anything.
func (m *Memory) Peek(ctx context.Context, requests ...Request) (d Decision, err error) {
	if !m.onWords(ctx, memory.Peek, requests, &d) {
		_, d, err = m.decide(ctx, opPeek, memory.Peek, requests, 0, 0)
	}
	return d, err
}

// PeekAfter returns the answer that Take would give to a request if taken units of its key were taken just before. It
// writes nothing.
func (m *Memory) PeekAfter(ctx context.Context, taken int64, request Request) (d Decision, err error) {
	_, d, err = m.decide(ctx, opPeek, memory.Peek, []Request{request}, 0, taken)
	return d, err
}

// Record counts the cost even if it does not fit.
func (m *Memory) Record(ctx context.Context, requests ...Request) (Decision, error) {
	return m.record(ctx, requests, 0)
}

func (m *Memory) record(ctx context.Context, requests []Request, lease uint64) (d Decision, err error) {
	_, d, err = m.decide(ctx, opRecord, memory.Record, requests, lease, 0)
	return d, err
}

// Return gives units back.
func (m *Memory) Return(ctx context.Context, requests ...Request) (Decision, error) {
	return m.giveBack(ctx, &Call{Op: OpReturn, Requests: requests})
}

func (m *Memory) giveBack(ctx context.Context, c *Call) (d Decision, err error) {
	if c.Taken == nil {
		_, d, err = m.decide(ctx, opReturn, memory.Record, c.Requests, c.Lease, 0)
	} else {
		d, err = m.undo(ctx, c)
	}
	if err == nil {
		m.tell(c.Requests)
	}
	return d, err
}

// undo gives back what still counts of a take.
func (m *Memory) undo(ctx context.Context, c *Call) (Decision, error) {
	var space requestSpace
	merged, err := m.merge(ctx, opReturn, c.Requests, c.Lease, space[:0])
	if err != nil {
		return Decision{}, err
	}
	for i := range c.Requests {
		mergedOf(merged, &c.Requests[i]).Taken = c.Taken[i]
	}
	for i := range merged {
		merged[i].Cost *= -1
	}
	_, answer, err := m.engine.Decide(memory.Undo, merged, 0)
	return describe(opReturn, merged, &answer, err)
}

// OnReturn has hear called after each Return and Reset with its requests, until hear returns false, so that a queue can
// look at the callers that wait for their keys. hear must not block, and must not keep the requests.
func (m *Memory) OnReturn(hear func(requests []Request) bool) {
	m.hearing.Lock()
	defer m.hearing.Unlock()
	all := []func([]Request) bool{hear}
	if before := m.hearers.Load(); before != nil {
		all = append(all, *before...)
	}
	m.hearers.Store(&all)
}

// tell tells the hearers, and forgets one that hears no longer.
func (m *Memory) tell(requests []Request) {
	all := m.hearers.Load()
	if all == nil {
		return
	}
	for i, hear := range *all {
		if !hear(requests) {
			left := slices.Delete(slices.Clone(*all), i, i+1) // one at a time; the next call forgets another
			defer m.hearers.CompareAndSwap(all, &left)
		}
	}
}

// Renew has the leases of slots begin now, if all of them are still held.
func (m *Memory) Renew(ctx context.Context, slots Call) (held bool, err error) {
	_, d, err := m.decide(ctx, opRenew, memory.Renew, slots.Requests, slots.Lease, 0)
	return d.Allowed, err
}

// Reset clears the keys of the requests under their rules.
func (m *Memory) Reset(ctx context.Context, requests ...Request) error {
	var space requestSpace
	merged, err := m.merge(ctx, opReset, requests, 0, space[:0])
	if err != nil {
		return err
	}
	if err = m.engine.Reset(merged, false); err == nil {
		m.tell(requests)
	}
	return err
}

// Check refuses rules that NewRule did not make. Memory can hold all others.
func (m *Memory) Check(rules ...*Rule) error {
	if m.engine == nil {
		return m.refusal(opCheck)
	}
	for i, r := range rules {
		if problem := Kit.Compiled(r).CheckMade(i, len(rules)); problem != nil {
			return requestError(opCheck, problem)
		}
	}
	return nil
}

// requestSpace keeps the requests of a small call on the stack.
type requestSpace [4]compiled.Request

// merge checks and merges the requests of a call for the engine.
func (m *Memory) merge(ctx context.Context, op string, requests []Request, lease uint64, space []compiled.Request) ([]compiled.Request, error) {
	if m.engine == nil {
		return nil, m.refusal(op)
	}
	merged, err := mergeRequests(op, requests, lease, space)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, cannotDecide(op, err)
	}
	return merged, nil
}

// describe returns the decision of an answer, or that of the error of a key without room.
func describe(op string, merged []compiled.Request, a *algorithm.Answer, err error) (d Decision, _ error) {
	if full, ok := err.(*memory.NoRoomError); ok {
		return Decision{}, compiled.Undecided{Err: fmt.Errorf("weir: %s: rule %q: %w: all %d keys that MaxKeys allows hold slots without a lease", op, full.Rule, ErrNoRoom, full.MaxKeys)}
	}
	d.describe(a)
	q := &merged[a.Binding]
	d.Rule, d.Key = q.Rule.Name, q.Key
	return d, nil
}

// MemoryStats describe the contents and the history of a Memory. They are not a snapshot of one instant, because
// decisions continue meanwhile.
type MemoryStats struct {
	Keys     int         // states of keys, including idle ones that are not yet evicted
	Shared   int         // states that keys share for lack of room
	MaxKeys  int         // the bound on the keys of each limit
	Bytes    int         // memory of the states, without the entries of logs
	Evicted  uint64      // evicted idle states
	Overflow uint64      // requests decided on shared states
	Rules    []RuleStats // by name
}

// RuleStats are the statistics of the rules with one name.
type RuleStats struct {
	Rule string
	// Decisions count each request to take, including reservations. Refusals count the requests among them that the
	// rule refused. A refused call of several requests names one rule, and counts as a refusal of that rule only.
	Decisions, Refusals uint64
	Overflow            uint64 // as in MemoryStats
	// Bans counts the bans that began. Unnoted counts the refusals that did not count towards a Ban, because the key had no
	// room for a state of its own: no key is banned for the refusals of others.
	Bans, Unnoted uint64
}

// Stats returns the statistics of the engine.
func (m *Memory) Stats() MemoryStats {
	if m.engine == nil {
		return MemoryStats{}
	}
	s := m.engine.Stats()
	rules := make([]RuleStats, len(s.Rules))
	for i, r := range s.Rules {
		rules[i] = RuleStats(r)
	}
	return MemoryStats{Keys: s.Keys, Shared: s.Shared, MaxKeys: m.maxKeys, Bytes: s.Bytes, Evicted: s.Evicted, Overflow: s.Overflow, Rules: rules}
}
