package table

import "math/bits"

// Directory finds the segment of a hash by bits of the hash above those that
// number its shard (extendible hashing; Fagin and others, 1979). Each segment
// knows its depth, the number of bits that its hashes share. A segment with less
// depth than the directory stands in several places.
type Directory[S any] struct {
	Depth    uint8
	Segments []S
}

// Index returns the place of a hash.
func (d *Directory[S]) Index(h Hash) int { return int(uint64(h) >> ShardBits & (1<<d.Depth - 1)) }

// Replace puts a segment at all places of the segment that is at one place and has the given depth.
func (d *Directory[S]) Replace(at int, depth uint8, s S) {
	for i := at & (1<<depth - 1); i < len(d.Segments); i += 1 << depth {
		d.Segments[i] = s
	}
}

// Split puts two segments, each deeper by one bit, at the places of the segment with the given depth. It doubles the
// directory if the directory has too few bits.
func (d *Directory[S]) Split(at int, depth uint8, lower, upper S) {
	if depth == d.Depth {
		d.Segments = append(d.Segments, d.Segments...)
		d.Depth++
	}
	at &= 1<<depth - 1
	d.Replace(at, depth+1, lower)
	d.Replace(at|1<<depth, depth+1, upper)
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
