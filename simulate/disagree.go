package simulate

import "fmt"

// Disagreement counts the events of a log that exactly one of two limits admits.
type Disagreement struct {
	Events     int64
	OnlyFirst  int64 // admitted by the first alone
	OnlySecond int64
}

// Disagree tries both candidates on all the traffic, as a replay does, and compares their answers event by event.
func (t *Traffic) Disagree(first, second Candidate) (d Disagreement, err error) {
	t.events.group(len(t.keys))
	var now int64
	one, err := first.decider(&now)
	if err != nil {
		return d, fmt.Errorf("simulate: disagree %q: %w", first.Text, err)
	}
	other, err := second.decider(&now)
	if err != nil {
		return d, fmt.Errorf("simulate: disagree %q: %w", second.Text, err)
	}
	for id, key := range t.keys {
		events := t.events.of(id)
		now = events[0]
		takeOne, err := one(key)
		if err != nil {
			return d, err
		}
		takeOther, err := other(key)
		if err != nil {
			return d, err
		}
		for i, at := range events {
			now = at
			a, err := takeOne(t.events.costOf(id, i))
			if err != nil {
				return d, err
			}
			b, err := takeOther(t.events.costOf(id, i))
			if err != nil {
				return d, err
			}
			d.Events++
			switch {
			case a.Allowed && !b.Allowed:
				d.OnlyFirst++
			case b.Allowed && !a.Allowed:
				d.OnlySecond++
			}
		}
	}
	return d, nil
}
