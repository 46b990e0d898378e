package table

import (
	"math/bits"
	"slices"
)

// directory finds the segment of a hash by bits of the hash above those that number its shard (extendible hashing;
// Fagin and others, 1979). Each segment knows its depth, the number of bits that its hashes share. A segment with less
// depth than the directory stands in several places, whose number is a power of two. A directory is immutable.
type directory struct{ places []segment }

func (d *directory) index(h Hash) int { return int(uint(h>>ShardBits) & uint(len(d.places)-1)) }

func (d *directory) segment(h Hash) *segment { return &d.places[d.index(h)] }

// with returns a directory with one segment, or with two that are deeper by one bit, in the place of the segment at an
// index. It has twice the places if d has too few bits.
func (d *directory) with(at int, segments ...segment) *directory {
	depth := d.places[at].depth
	places := slices.Clone(d.places)
	if len(segments) > 1 && 1<<depth == len(places) {
		places = slices.Concat(d.places, d.places)
	}
	for i := at & (1<<depth - 1); i < len(places); i += 1 << depth {
		places[i] = segments[i>>depth&(len(segments)-1)]
	}
	return &directory{places}
}

// all yields each segment once.
func (d *directory) all(yield func(*segment) bool) {
	for i := range d.places {
		if s := &d.places[i]; i>>s.depth == 0 && !yield(s) {
			return
		}
	}
}

// maxDepth is the largest depth of a segment in a shard of n keys: four bits more than where each segment would hold a
// few keys. Hashes that are as good as random stay far below. Others share a segment that grows, instead of a directory
// that doubles without end.
func maxDepth(keys, few int) uint8 { return uint8(bits.Len(uint(keys)/uint(few))) + 4 }
