package pace

import (
	"slices"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// keysOf returns a text that is equal for requests of the same keys under the same limits.
func keysOf(requests []weir.Request) string { return strings.Join(keysIn(requests), "\x00\x00") }

// keyOf returns a text that is equal for requests of one key under the same limits. So a caller under new limits does not wait
// behind one under those of the past.
func keyOf(r *weir.Request) string {
	if r.Rule == nil {
		return r.Key // the engine refuses it
	}
	return r.Rule.String() + "\x00" + r.Key
}

// nameOf returns a text that is equal for requests of one key, whatever the limits of their rules.
func nameOf(r *weir.Request) string {
	if r.Rule == nil {
		return r.Key
	}
	return r.Rule.Name() + "\x00" + r.Key
}

// namesIn returns the distinct names of requests.
func namesIn(requests []weir.Request) (names []string) {
	for i := range requests {
		names = append(names, nameOf(&requests[i]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// keysIn returns the distinct keys of requests.
func keysIn(requests []weir.Request) (keys []string) {
	for i := range requests {
		keys = append(keys, keyOf(&requests[i]))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// slotKeys returns the keys that ask for slots.
func slotKeys(requests []weir.Request) []string {
	return keysIn(slices.DeleteFunc(slices.Clone(requests), func(r weir.Request) bool { return !asksForSlots(&r) }))
}

func asksForSlots(r *weir.Request) bool { return enginekit.Held(r.Rule) != nil }

// onKey returns the requests of a key as one.
func onKey(requests []weir.Request, key string) (q weir.Request) {
	for i := range requests {
		if keyOf(&requests[i]) == key {
			cost := q.Cost
			q = requests[i]
			q.Cost += cost
		}
	}
	return q
}

// waitsForSlots reports whether slots refuse, which may come back before the engine's RetryAfter.
func waitsForSlots(requests []weir.Request, d weir.Decision) bool {
	return slices.ContainsFunc(requests, func(r weir.Request) bool { return r.Rule.Name() == d.Rule && bySlotsOf(r.Rule, d) })
}

// bySlotsOf reports whether it is slots of a rule that refuse.
func bySlotsOf(r *weir.Rule, d weir.Decision) bool {
	if enginekit.Held(r) == nil || enginekit.Spent(r) == nil {
		return enginekit.Held(r) != nil
	}
	limits := r.Limits()
	return weir.Describe(limits[min(int(d.RefusedBy), len(limits)-1)]).Held
}

// costOf returns the cost of the key that a decision names.
func costOf(requests []weir.Request, d weir.Decision) (cost int64) {
	for _, r := range requests {
		if r.Rule.Name() == d.Rule && r.Key == d.Key {
			cost += r.Cost
		}
	}
	return cost
}
