// Package histories records concurrent calls of a limiter and their answers. porcupine then looks for an order in
// which a sequential model gives the same answers. Start with TestHistoriesAreLinearizable.
package histories

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weirflow/weir"
)

// The instants of a history are whole steps from its start, and every limit refills whole units at whole steps. The
// models therefore only count, and use no formula of the library.
const step = 100 * time.Millisecond

// verb is the method of a call.
type verb int

const (
	take verb = iota
	peek
	record
	reset
)

// call is one call, about one key or several.
type call struct {
	verb verb
	keys []int
	cost int64
	at   int64 // steps from the start
	id   int   // of a caller that waits
	flow int   // of that caller
}

// answer is the answer to a call, without names. For several keys only Allowed counts.
type answer struct {
	Allowed    bool
	Remaining  int64
	RetryAfter time.Duration
}

func answerOf(d weir.Decision) answer {
	return answer{d.Allowed, d.Remaining, d.RetryAfter}
}

// used is a model's state of one key.
type used struct {
	units int64
	at    int64 // the step of the count
}

// rules is a sequential model of one limit.
type rules interface {
	// now returns the units used as of a step.
	now(u used, at int64) used
	capacity() int64
	// until returns the time until n more units fit.
	until(u used, n int64) time.Duration
}

// bucket refills one unit per step.
type bucket struct{ burst int64 }

func (b bucket) capacity() int64 { return b.burst }

func (b bucket) now(u used, at int64) used {
	return used{max(0, u.units-(at-u.at)), at}
}

func (b bucket) until(u used, n int64) time.Duration {
	return time.Duration(u.units+n-b.burst) * step
}

// fastBucket refills several units per step.
type fastBucket struct{ burst, perStep int64 }

func (b fastBucket) capacity() int64 { return b.burst }

func (b fastBucket) now(u used, at int64) used {
	return used{max(0, u.units-b.perStep*(at-u.at)), at}
}

func (b fastBucket) until(u used, n int64) time.Duration {
	return time.Duration(u.units+n-b.burst) * step / time.Duration(b.perStep)
}

// window clears all units every few steps, including those recorded above the count.
type window struct{ count, steps int64 }

func (w window) capacity() int64 { return w.count }

func (w window) now(u used, at int64) used {
	if at/w.steps != u.at/w.steps {
		u.units = 0
	}
	return used{u.units, at}
}

func (w window) until(u used, n int64) time.Duration {
	return time.Duration(w.steps-u.at%w.steps) * step
}

// cycle refills count units every few steps.
type cycle struct{ count, steps int64 }

func (c cycle) capacity() int64 { return c.count }

func (c cycle) now(u used, at int64) used {
	return used{max(0, u.units-(at/c.steps-u.at/c.steps)*c.count), at}
}

func (c cycle) until(u used, n int64) time.Duration {
	lacking := u.units + n - c.count
	cycles := u.at/c.steps + (lacking+c.count-1)/c.count
	return time.Duration(cycles*c.steps-u.at) * step
}

// tell returns the answer to a call on one key under one limit or several, and the states of the key afterwards. It
// counts units recorded above the capacity.
func tell(limits []rules, before []used, c call) (answer, []used) {
	after := make([]used, len(limits))
	if c.verb == reset {
		return answer{}, after
	}
	a := answer{Allowed: true, Remaining: math.MaxInt64}
	for i, r := range limits {
		after[i] = r.now(before[i], c.at)
		a.Allowed = a.Allowed && fits(r, after[i], c.cost)
	}
	for i, r := range limits {
		u := &after[i]
		if c.verb == record || c.verb == take && a.Allowed {
			u.units = max(0, u.units+c.cost)
		}
		switch {
		case a.Allowed || fits(r, *u, c.cost):
		case c.cost > r.capacity():
			a.RetryAfter = weir.Never
		default:
			a.RetryAfter = max(a.RetryAfter, r.until(*u, c.cost))
		}
		a.Remaining = min(a.Remaining, max(0, r.capacity()-u.units))
	}
	return a, after
}

func fits(r rules, u used, n int64) bool { return n <= 0 || u.units+n <= r.capacity() }

// model returns the porcupine model of a rule over a number of keys. Its state has a part for each key and limit.
func model(limits []rules, keys int) porcupine.Model {
	return porcupine.Model{
		Init:  func() any { return make([]used, keys*len(limits)) },
		Equal: func(a, b any) bool { return slices.Equal(a.([]used), b.([]used)) },
		Step: func(state, input, output any) (bool, any) {
			want, next := tellAll(limits, state.([]used), input.(call))
			return output.(answer) == want, next
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

// tellAll applies tell to all keys of a call, or to none.
func tellAll(limits []rules, state []used, c call) (answer, []used) {
	next := slices.Clone(state)
	allowed := true
	for _, key := range c.keys {
		of := next[key*len(limits):][:len(limits)]
		a, after := tell(limits, of, c)
		if copy(of, after); len(c.keys) == 1 {
			return a, next
		}
		allowed = allowed && a.Allowed
	}
	if !allowed {
		return answer{}, slices.Clone(state)
	}
	return answer{Allowed: true}, next
}

// byKey splits a history by key, if every call is about one key. porcupine can then judge each key separately.
func byKey(keys int) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, keys)
		for _, operation := range history {
			key := operation.Input.(call).keys[0]
			parts[key] = append(parts[key], operation)
		}
		return parts
	}
}
