package table

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestADirectoryIsItsPlacesAndNeverChanges splits and replaces random segments, told apart by their room, beside a list
// of all hashes' segments.
func TestADirectoryIsItsPlacesAndNeverChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	d, want, segments := &directory{make([]segment, 1)}, make([]uint32, 1<<12), uint32(1)
	for len(d.places) < 512 {
		h := Hash(random.Uint64())
		before, at := slices.Clone(d.places), d.index(h)
		depth := d.places[at].depth
		change := []segment{{room: segments, depth: depth}}
		if random.IntN(4) > 0 {
			change = []segment{{room: segments, depth: depth + 1}, {room: segments + 1, depth: depth + 1}}
		}
		for i := range want {
			if (i^at)&(1<<depth-1) == 0 {
				want[i] = segments + uint32(i>>depth&(len(change)-1))
			}
		}
		segments += uint32(len(change))
		next := d.with(at, change...)
		if !slices.EqualFunc(d.places, before, func(a, b segment) bool { return a.room == b.room && a.depth == b.depth }) {
			t.Fatalf("a change of segment %d of depth %d changed the earlier directory of %d places", at, depth, len(d.places))
		}
		d = next
		for i, room := range want {
			if got := d.segment(Hash(i) << ShardBits).room; got != room {
				t.Fatalf("after a change of segment %d of depth %d, hash %d has segment %d, want %d", at, depth, i, got, room)
			}
		}
	}
}
