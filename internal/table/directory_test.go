package table

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// places returns the segments of all places.
func places(d Directory[int]) (all []int) {
	for i := range d.Places() {
		all = append(all, *d.At(i))
	}
	return all
}

// replaced returns places in which those of one segment hold another.
func replaced(all []int, at int, depth uint8, s int) []int {
	all = slices.Clone(all)
	for i := range all {
		if (i^at)&(1<<depth-1) == 0 {
			all[i] = s
		}
	}
	return all
}

// TestADirectoryIsItsPlacesAndNeverChanges splits and replaces random segments, up to 16 parts, beside a slice of all
// places.
func TestADirectoryIsItsPlacesAndNeverChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	d, want, depths, segments := NewDirectory([]int{0}), []int{0}, map[int]uint8{0: 0}, 1
	for d.Places() < 16*partPlaces {
		h := Hash(random.Uint64())
		at := d.Index(h)
		if at != int(uint64(h>>ShardBits)%uint64(d.Places())) {
			t.Fatalf("hash %#x has place %d of %d", uint64(h), at, d.Places())
		}
		before, depth := want, depths[*d.At(at)]
		var next Directory[int]
		if random.IntN(4) == 0 {
			next = d.Replace(at, depth, segments)
			want = replaced(want, at, depth, segments)
			depths[segments] = depth
			segments++
		} else {
			next = d.Split(at, depth, segments, segments+1)
			if 1<<depth == d.Places() {
				want = slices.Concat(want, want)
			}
			lower := at & (1<<depth - 1)
			want = replaced(want, lower, depth+1, segments)
			want = replaced(want, lower|1<<depth, depth+1, segments+1)
			depths[segments], depths[segments+1] = depth+1, depth+1
			segments += 2
		}
		if !slices.Equal(places(d), before) {
			t.Fatalf("a change of segment %d of depth %d changed the earlier directory of %d places", at, depth, d.Places())
		}
		if !slices.Equal(places(next), want) {
			t.Fatalf("after a change of segment %d of depth %d the places are %v, want %v", at, depth, places(next), want)
		}
		d = next
	}
	if flat := NewDirectory(places(d)); !slices.Equal(places(flat), want) {
		t.Errorf("a directory of %d segments has the places %v, want %v", len(want), places(flat), want)
	}
}

// TestAChangeOfADirectoryCopiesFewPlaces changes each segment of a directory in which each has one place or two. The
// parts without the segment are shared, also when the directory doubles.
func TestAChangeOfADirectoryCopiesFewPlaces(t *testing.T) {
	const keys, depth = 16 * partPlaces, partBits + 4
	d := NewDirectory(make([]int, keys))
	for doublings := range 2 {
		for at := range keys {
			next := d.Split(at, depth, 1, 2)
			if doublings > 0 && next.Places() != d.Places() {
				t.Fatalf("a directory of %d places has %d after a split that needs no more", d.Places(), next.Places())
			}
			copied := 0
			for i, part := range next.parts {
				if &part[0] != &d.parts[i%len(d.parts)][0] {
					copied++
				}
			}
			if copied != 2 {
				t.Fatalf("a split of segment %d of %d copied %d parts of %d, want 2", at, d.Places(), copied, len(next.parts))
			}
		}
		d = d.Split(0, depth, 1, 2)
	}
}
