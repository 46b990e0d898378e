package weir

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/duration"
)

// Toy shows all that a new limit needs: a type, its entry, and its four functions. It admits one unit in any interval
// of Rest. RegisterToy adds it for one test.
type Toy struct{ Rest time.Duration }

func RegisterToy(t *testing.T) {
	before := kinds
	kinds = append(kinds[:len(kinds):len(kinds)], &toyKind)
	t.Cleanup(func() { kinds = before })
}

var toyKind = kind{
	name: "toy",
	read: func(s *scanner) (_ Limit, err error) {
		l := Toy{}
		l.Rest, err = s.duration()
		return l, err
	},
	revive: func(window string, _ int64) Limit {
		rest, _ := duration.Parse(window)
		return Toy{rest}
	},
}

func (l Toy) validate() error                        { return checkDuration(l.String(), "rest", l.Rest, 1, MaxPeriod) }
func (l Toy) String() string                         { return "toy " + duration.Text(l.Rest) }
func (l Toy) MarshalText() ([]byte, error)           { return []byte(l.String()), nil }
func (l Toy) algorithm(t *ticks) algorithm.Algorithm { return resting{ns: t.count("rest", l.Rest)} }
func (Toy) kind() *kind                              { return &toyKind }
func (l Toy) share(s shares) Limit                   { return Toy{s.longer(l.Rest, MaxPeriod)} }
func (l Toy) describe() Description {
	return Description{Rate: Per(1, l.Rest), Burst: 1, Worst: 1, Window: l.Rest, Refill: RefillEach, RefillText: eachAfterAPeriod}
}

func (l Toy) window() string { return duration.Text(l.Rest) }

// resting is the rest of the toy in ns. State: A is the end of the rest.
type resting struct {
	algorithm.Plain
	ns int64
}

func (r resting) Wait(s algorithm.State, now, _ int64) int64 { return max(s.A-now, 0) }

func (r resting) Take(s algorithm.State, now, n int64) algorithm.State {
	return algorithm.State{A: max(s.A, now) + n*r.ns}
}

func (r resting) Give(s algorithm.State, now, n int64) algorithm.State {
	return algorithm.State{A: max(s.A-n*r.ns, now)}
}

func (r resting) Room(s algorithm.State, now int64) int64 {
	if s.A > now {
		return 0
	}
	return 1
}

func (r resting) Fresh() algorithm.State { return algorithm.State{} }
func (r resting) Capacity() int64        { return 1 }

func (r resting) AppendState(into []int64, s algorithm.State) []int64 { return append(into, s.A) }

func (r resting) RestoreState(numbers []int64) (algorithm.State, bool) {
	if len(numbers) != 1 {
		return algorithm.State{}, false
	}
	return algorithm.State{A: numbers[0]}, true
}

// ProblemsOfKinds names what the entries of the registry omit, and what they say that is false for the limits of the
// texts.
func ProblemsOfKinds(texts []string) (problems []string) {
	for _, k := range kinds {
		problems = append(problems, k.problems(texts)...)
	}
	return problems
}

// ProblemsWithout returns the ProblemsOfKinds of the toy without one field of its entry.
func ProblemsWithout(field string, texts []string) []string {
	k := toyKind
	switch field {
	case "name":
		k.name = ""
	case "read":
		k.read = nil
	case "revive":
		k.revive = nil
	}
	return k.problems(texts)
}

func (k *kind) problems(texts []string) (problems []string) {
	bad := func(field, what string) {
		problems = append(problems, fmt.Sprintf("%s: %s %s", strconv.Quote(k.name), field, what))
	}
	if k.name == "" {
		bad("name", "is missing")
	}
	if k.read == nil {
		bad("read", "is missing")
	}
	for _, text := range texts {
		limit, err := ParseLimit(text)
		if err != nil || limit.kind().name != k.name && k.name != "" {
			continue
		}
		if k.revive == nil && refusalOf(limit, limit.algorithm(nanoseconds)) == nil {
			bad("revive", "is missing, and rules hold the limit")
		}
	}
	return problems
}

// NameOfKind returns the name of a limit's kind.
func NameOfKind(l Limit) string { return l.kind().name }

// NamesOfKindsInRules returns the names of the kinds that rules hold.
func NamesOfKindsInRules() (names []string) {
	for _, k := range kinds {
		if k.inRules() {
			names = append(names, k.name)
		}
	}
	return names
}

// RecordAt works like Record at a given time.
func (l *Limiter) RecordAt(t time.Time, n int64) Decision {
	return l.decide(clock.Given(t), n, recorded)
}

// ReturnAt works like Return at a given time.
func (l *Limiter) ReturnAt(t time.Time, n int64) Decision {
	return l.decide(clock.Given(t), n, returned)
}

// RecordAt works like Record at a given time.
func (k *Keyed[K]) RecordAt(t time.Time, key K, n int64) Decision {
	return k.decide(opRecord, clock.Given(t), key, n, recorded)
}

// ReturnAt works like Return at a given time.
func (k *Keyed[K]) ReturnAt(t time.Time, key K, n int64) Decision {
	return k.decide(opReturn, clock.Given(t), key, n, returned)
}
