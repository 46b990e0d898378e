// Package rule holds the compiled form of a rule, and the code that checks, merges and names the requests of a call.
// It uses no exported type of package weir; packages weir and enginekit translate.
package rule

import (
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
)

// Compiled is a rule ready to decide. It is immutable.
type Compiled struct {
	Name  string
	Text  string // the limits in the form that ParseRule reads
	Parts []Part
	// Home is the cache of the parts' states in memory engines. Only they know its type.
	Home any
	kept atomic.Pointer[kept]
}

// Part is one limit of a rule, ready to decide.
type Part struct {
	Algorithm algorithm.Algorithm
	Words     algorithm.Worder // the algorithm if its states fit in words, otherwise nil
	State     string           // the name of the limit's states: rule name, identity and ordinal
	Delays    bool             // it admits with a delay
	Leases    bool             // identities hold its units
	Endless   bool             // its units are held until they are released
}

// NewPart returns a part whose states have the name.
func NewPart(a algorithm.Algorithm, state string) Part {
	p := Part{Algorithm: a, State: state}
	p.Words, _ = a.(algorithm.Worder)
	p.Delays, p.Leases, p.Endless = algorithm.Delays(a), algorithm.Leases(a), a.Endless()
	return p
}

// Add appends the part of a limit with an identity. Its states are named by the
// rule, the identity and the number of earlier limits with the same identity,
// joined by NUL bytes. Neither of the first two holds a NUL.
func (c *Compiled) Add(a algorithm.Algorithm, identity string) {
	name := c.Name + "\x00" + identity + "\x00"
	ordinal := 0
	for i := range c.Parts {
		if _, ok := cutOrdinal(c.Parts[i].State, name); ok {
			ordinal++
		}
	}
	c.Parts = append(c.Parts, NewPart(a, name+strconv.Itoa(ordinal)))
}

// cutOrdinal returns the rest of a state's name after name, if that is its ordinal.
func cutOrdinal(state, name string) (ordinal string, ok bool) {
	if len(state) <= len(name) || state[:len(name)] != name {
		return "", false
	}
	return state[len(name):], true
}

// Made reports whether the rule was made by NewRule.
func (c *Compiled) Made() bool { return c != nil && len(c.Parts) > 0 }

// Delays reports whether the rule admits with a delay.
func (c *Compiled) Delays() bool {
	return slices.ContainsFunc(c.Parts, func(p Part) bool { return p.Delays })
}

// Leases reports whether identities hold the rule's units.
func (c *Compiled) Leases() bool {
	return slices.ContainsFunc(c.Parts, func(p Part) bool { return p.Leases })
}

// Bookable reports whether all limits can be reserved ahead.
func (c *Compiled) Bookable() bool {
	return !slices.ContainsFunc(c.Parts, func(p Part) bool { return !algorithm.Bookable(p.Algorithm) })
}

// Alone reports whether no other request can be combined with one under the rule, because the rule delays or writes
// what it refuses.
func (c *Compiled) Alone() bool { return c.Parts[0].Algorithm.Solitary() }

// Of returns the compiled form of a *weir.Rule. Package weir sets it, so that no exported signature of weir names a
// type of this package.
var Of func(weirRule any) *Compiled

// AlgorithmOf compiles a weir.Limit, with all times in ticks. Package weir sets it.
var AlgorithmOf func(weirLimit any, tick time.Duration) (algorithm.Algorithm, error)

// Kit has functions of package weir that package enginekit exports in its place. Package weir sets it.
var Kit any

// kept is the values that a rule stores, one of each type.
type kept struct {
	value any
	next  *kept
}

// Keep returns the value of type *T that the rule stores, and makes it if there is none.
func Keep[T any](c *Compiled, build func() *T) *T {
	for {
		first := c.kept.Load()
		for k := first; k != nil; k = k.next {
			if value, ok := k.value.(*T); ok {
				return value
			}
		}
		c.kept.CompareAndSwap(first, &kept{build(), first})
	}
}
