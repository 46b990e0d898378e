package weir

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/table"
)

// Memory is the Engine that keeps its states in this process. States that are
// as good as never seen are forgotten, which no answer can show. It holds every
// limit of a Rule, never fails but for bad requests and contexts that are done,
// and never waits for anything but other decisions.
//
// Keys are not kept, but a hash of 64 bits under a secret seed: the odds that two
// of 10 million keys share a budget are below 3e-6, whoever chooses the keys.
//
// Make it with NewMemory: the zero Memory refuses everything.
type Memory struct {
	clock  *clock.Clock
	seed   *table.Seed
	tables sync.Map // the state of a part to its *limitTable
	rules  sync.Map // the name of a rule to its *ruleCounts
	shards [shardCount]shard

	maxKeys    int
	maxParents int
	parent     func(key string) (string, bool) // nil if keys have none
	note       overflowNote
	top        top
}

var (
	_ Engine      = (*Memory)(nil)
	_ WithinTaker = (*Memory)(nil)
)

// MemoryOptions configure a Memory. The zero value is ready to use.
type MemoryOptions struct {
	// Clock tells the time in nanoseconds since the Unix epoch, and is taken
	// as it is. Default: the wall clock at the start plus the monotonic clock
	// since. It moves forward to a wall clock that is ahead, never moves back,
	// and runs at 7/8 speed while it is ahead of the wall clock.
	Clock func() int64
	// MaxKeys is how many keys one limit of a rule remembers at most, not
	// counting idle ones. Default, and for any value below 1: DefaultMaxKeys. A key takes at most 28 bytes
	// under most limits, and under logs as many entries as the limit has units.
	// Keys that find no room share budgets, except under a Concurrency without
	// a Lease, which refuses them with ErrNoRoom: see docs/memory.md.
	MaxKeys int
	// Parent names what a key that finds no room shares a budget with, as an
	// address does with all of its network; ok is false if there is nothing.
	// A parent that finds no room is asked for its own. It must be fast, safe
	// for concurrent use, and say the same each time. Without it, or at its
	// end, keys share budgets in 256 groups that nobody can choose.
	Parent func(key string) (parent string, ok bool)
	// Logger is told when keys share budgets for want of room, at most once a
	// minute. Without one nothing is logged.
	Logger *slog.Logger
}

// NewMemory makes an engine that has seen nothing.
func NewMemory(options MemoryOptions) *Memory {
	var secret [table.SecretBytes]byte
	rand.Read(secret[:]) // never fails
	m := &Memory{clock: clock.New(options.Clock), seed: table.NewSeed(secret)}
	m.maxKeys, m.parent, m.note.logger = keyBound(options.MaxKeys), options.Parent, options.Logger
	m.maxParents = max(m.maxKeys/keysPerParent, minParents)
	m.note.last.Store(math.MinInt64)
	for i := range m.shards {
		m.shards[i].init()
	}
	return m
}

// refusal is the error of a zero Memory.
func (m *Memory) refusal(op string) error { return notMade(op, "memory", "weir.NewMemory") }

// Take admits the cost of all requests now, or none.
func (m *Memory) Take(ctx context.Context, requests ...Request) (d Decision, err error) {
	if len(requests) == 1 && m.takeOne(ctx, &requests[0], &d) {
		return d, nil
	}
	var space callSpace
	c, err := m.gather(ctx, opTake, requests, &space)
	if err != nil {
		return Decision{}, err
	}
	reading := m.clock.Now()
	now, err := m.lock(opTake, &c, reading)
	if err != nil {
		return Decision{}, err
	}
	defer m.unlock(&c, reading)
	answer := algorithm.Take(c.parts, now)
	m.store(&c, answer.Changed, reading)
	m.count(&c, &answer, now)
	return c.decision(answer), nil
}

// TakeWithin is Take: a decision in memory waits for nothing.
func (m *Memory) TakeWithin(_ time.Duration, requests ...Request) (Decision, error) {
	return m.Take(context.Background(), requests...)
}

// TakeEach decides each request on its own, in order.
func (m *Memory) TakeEach(ctx context.Context, requests []Request, results []Result) error {
	if len(requests) != len(results) {
		return &RequestError{Op: opTake, Field: "results", Reason: fmt.Sprintf("are %d for %d requests", len(results), len(requests))}
	}
	if err := ctx.Err(); err != nil {
		return cannotDecide(opTake, err)
	}
	for i := range requests {
		d, err := m.Take(context.Background(), requests[i:i+1]...)
		results[i] = Result{Decision: d, Err: err}
	}
	return nil
}

// Reserve is Take with a handle to settle or cancel.
func (m *Memory) Reserve(ctx context.Context, requests ...Request) (*Reservation, error) {
	return Reserve(ctx, m, requests...)
}

// Peek is the answer Take would give, and writes nothing.
func (m *Memory) Peek(ctx context.Context, requests ...Request) (Decision, error) {
	var space callSpace
	c, err := m.gather(ctx, opPeek, requests, &space)
	if err != nil {
		return Decision{}, err
	}
	now, err := m.lock(opPeek, &c, m.clock.Now())
	if err != nil {
		return Decision{}, err
	}
	defer m.unlock(&c, now)
	return c.decision(algorithm.Peek(c.parts, now)), nil
}

// Record counts the cost whether it fits or not; a negative one gives back.
func (m *Memory) Record(ctx context.Context, requests ...Request) (Decision, error) {
	var space callSpace
	c, err := m.gather(ctx, opRecord, requests, &space)
	if err != nil {
		return Decision{}, err
	}
	reading := m.clock.Now()
	now, err := m.lock(opRecord, &c, reading)
	if err != nil {
		return Decision{}, err
	}
	defer m.unlock(&c, reading)
	answer := algorithm.Record(c.parts, now)
	m.store(&c, answer.Changed, reading)
	return c.decision(answer), nil
}

// Reset forgets the keys of the requests under their rules.
func (m *Memory) Reset(ctx context.Context, requests ...Request) error {
	var space callSpace
	c, err := m.gather(ctx, opReset, requests, &space)
	if err != nil {
		return err
	}
	now, _ := m.tryLock(&c, m.clock.Now())
	defer m.unlock(&c, now)
	for i := range c.slots {
		c.slots[i].reset()
	}
	return nil
}

// Check finds nothing that memory cannot hold but rules that are nil.
func (m *Memory) Check(rules ...*Rule) error {
	if m.clock == nil {
		return m.refusal(opCheck)
	}
	for i, r := range rules {
		if r == nil || !r.compiled.Made() {
			return &RequestError{Op: opCheck, Field: "rule", Reason: fmt.Sprintf("%d of %d was not made by NewRule", i+1, len(rules))}
		}
	}
	return nil
}
