package stored

import (
	"errors"
	"strconv"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// compiled is a rule in the form of the script, or the reason the engine cannot hold it.
type compiled struct {
	Limits    []Limit
	Single    *Limit // the only limit, if a take of it alone needs no lease and no other check
	Stateless bool   // some of the limits have no state
	Err       error
}

func Compile(r *weir.Rule) *compiled {
	c := &compiled{}
	var problems []error
	states := enginekit.StateNames(r)
	for i, l := range r.Limits() {
		made, err := NewLimit(l)
		if made.Kind == KindNone {
			c.Stateless = true
		} else {
			made.name(states[i])
		}
		made.Weight = made.work()
		c.Limits = append(c.Limits, made)
		problems = append(problems, err)
	}
	if c.Err = errors.Join(problems...); c.Err == nil {
		c.Err = checkWork(r, c.Limits)
	}
	if l := &c.Limits[0]; c.Err == nil && len(c.Limits) == 1 && l.Kind != KindNone && l.Kind != KindSlots {
		c.Single = l
	}
	return c
}

// name names the state of a key. long is the name that enginekit gives it. A log, a gate and slots have a value of
// their own, under the rule's name and a letter for the algorithm, with the numbers that distinguish states and the
// ordinal if it is not the first. The others share the value under the rule's name alone, and have an identity in it: the
// letter, the ordinal and the numbers.
func (l *Limit) name(long string) {
	fields := strings.Split(long, "\x00") // the rule's name, the identity, the ordinal
	rule := string(AppendEscaped(nil, fields[0]))
	if !l.Fixed {
		code := l.Letter
		if l.Kind == KindLog {
			code += strconv.FormatInt(l.Period, 36)
		}
		if fields[2] != "0" {
			code += "." + fields[2]
		}
		l.State = rule + ":" + code + ":"
		return
	}
	l.State = rule + "::"
	ordinal, _ := strconv.Atoi(fields[2]) // below rule.MaxLimits
	id := append([]byte(l.Letter), byte(ordinal))
	switch l.Kind { // to other versions a fixed window, but none that a rule has
	case KindQuota:
		id = []byte{'f', byte(ordinal) | 1<<7}
	case KindFirst:
		id = []byte{'f', byte(ordinal) | 1<<6}
	}
	if l.Kind > KindLeaky {
		id = Doubles(id, float64(l.Period))
	}
	if l.Kind == KindCycle {
		id = Doubles(id, float64(l.Origin))
	}
	l.Identity = string(id)
}
