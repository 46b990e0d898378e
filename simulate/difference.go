package simulate

import (
	"cmp"
	"slices"
)

// Difference tells which keys would notice a change from the first of two limits to the second.
type Difference struct {
	OnlyFirst  int             `json:"only_first"`  // keys that only the first denies anything
	OnlySecond int             `json:"only_second"` // keys that only the second denies anything
	Both       int             `json:"both"`
	Keys       []KeyDifference `json:"keys"` // with unequal counts, the largest difference first
}

// KeyDifference is what two limits deny one key.
type KeyDifference struct {
	Key      string `json:"key"`
	Requests int64  `json:"requests"`
	First    int64  `json:"first"`  // denied by the first limit
	Second   int64  `json:"second"` // denied by the second limit
}

// difference compares two outcomes of the same traffic. Keys with equal differences are in order of name.
func difference(first, second *outcome, keys []string, top int) *Difference {
	byKey := map[int]*KeyDifference{}
	for i, o := range []*outcome{first, second} {
		for _, k := range o.denied {
			d, ok := byKey[k.id]
			if !ok {
				d = &KeyDifference{Key: valid(keys[k.id]), Requests: k.admitted + k.denied}
				byKey[k.id] = d
			}
			if i == 0 {
				d.First = k.denied
			} else {
				d.Second = k.denied
			}
		}
	}
	result := &Difference{Keys: []KeyDifference{}}
	for _, d := range byKey {
		switch {
		case d.Second == 0:
			result.OnlyFirst++
		case d.First == 0:
			result.OnlySecond++
		default:
			result.Both++
		}
		if d.First != d.Second {
			result.Keys = append(result.Keys, *d)
		}
	}
	change := func(d KeyDifference) int64 { return max(d.First-d.Second, d.Second-d.First) }
	slices.SortFunc(result.Keys, func(a, b KeyDifference) int {
		return cmp.Or(cmp.Compare(change(b), change(a)), cmp.Compare(a.Key, b.Key))
	})
	result.Keys = result.Keys[:min(len(result.Keys), max(top, 0))]
	return result
}
