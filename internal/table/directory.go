package table

import (
	"math/bits"
	"slices"
)

// Directory finds the segment of a hash by bits of the hash above those that number its shard (extendible hashing;
// Fagin and others, 1979). Each segment knows its depth, the number of bits that its hashes share. A segment with less
// depth than the directory stands in several places.
//
// A directory is immutable. A change returns another one, which shares the parts that it does not change. A change
// therefore copies a few parts and the list of parts, also when the directory doubles. A copy of all places would take
// longer than a copy of the segment in a shard of 100,000 hashes.
type Directory[S any] struct {
	last  uint  // the last place, of a power of two
	few   []S   // all places if they are one part: a search then takes one load less
	parts [][]S // otherwise; each has partPlaces
}

const (
	partBits   = 5
	partPlaces = 1 << partBits
)

// NewDirectory returns a directory with these segments, a power of two, each in one place.
func NewDirectory[S any](segments []S) Directory[S] {
	d := Directory[S]{last: uint(len(segments)) - 1}
	if len(segments) <= partPlaces {
		d.few = segments
		return d
	}
	for part := range slices.Chunk(segments, partPlaces) {
		d.parts = append(d.parts, part)
	}
	return d
}

// Index returns the place of a hash.
func (d *Directory[S]) Index(h Hash) int { return int(uint(h>>ShardBits) & d.last) }

// At returns the segment at a place.
func (d *Directory[S]) At(i int) *S {
	if few := d.few; uint(i) < uint(len(few)) {
		return &few[i]
	}
	return &d.parts[i>>partBits][i&(partPlaces-1)]
}

// Places returns the number of places.
func (d *Directory[S]) Places() int { return int(d.last) + 1 }

// Replace returns a directory with a segment at all places of the segment that is at one place and has the given depth.
func (d Directory[S]) Replace(at int, depth uint8, s S) Directory[S] {
	d.few, d.parts = slices.Clone(d.few), slices.Clone(d.parts)
	d.put(at, depth, s)
	return d
}

// Split returns a directory with two segments, each deeper by one bit, at the places of the segment with the given
// depth. It has twice the places if d has too few bits.
func (d Directory[S]) Split(at int, depth uint8, lower, upper S) Directory[S] {
	if 1<<depth == d.Places() {
		d = d.double()
	} else {
		d.few, d.parts = slices.Clone(d.few), slices.Clone(d.parts)
	}
	at &= 1<<depth - 1
	d.put(at, depth+1, lower)
	d.put(at|1<<depth, depth+1, upper)
	return d
}

// double returns a directory in which each segment has twice the places. Its parts are those of d, twice.
func (d Directory[S]) double() Directory[S] {
	switch {
	case d.Places() < partPlaces:
		d.few = slices.Concat(d.few, d.few)
	case d.Places() == partPlaces:
		d.few, d.parts = nil, [][]S{d.few, d.few}
	default:
		d.parts = slices.Concat(d.parts, d.parts)
	}
	d.last = 2*d.last + 1
	return d
}

// put puts s at the places of a segment of the given depth. It copies the parts that it changes. No other directory has
// the list of parts, or the few places.
func (d *Directory[S]) put(at int, depth uint8, s S) {
	copied := -1
	for i := at & (1<<depth - 1); i < d.Places(); i += 1 << depth {
		if part := i >> partBits; d.parts != nil && part != copied {
			d.parts[part] = slices.Clone(d.parts[part])
			copied = part
		}
		*d.At(i) = s
	}
}

// SplitBit returns 1 for a hash that a split of a segment of the given depth sends to the upper half, and otherwise
// 0.
func SplitBit(h Hash, depth uint8) int { return int(uint64(h) >> (ShardBits + depth) & 1) }

// IsFirst reports whether a place is the first of its segment, so that a loop over
// all places meets each segment once.
func IsFirst(at int, depth uint8) bool { return at>>depth == 0 }

// MaxDepth is the largest depth of a segment in a shard of n keys: four bits more
// than where each segment would hold a few keys. Hashes that are as good as random
// stay far below. Others share a segment that grows, instead of a directory that
// doubles without end.
func MaxDepth(keys, few int) uint8 { return uint8(bits.Len(uint(keys)/uint(few))) + 4 }
