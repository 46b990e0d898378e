package memory

import (
	"fmt"

	"github.com/weirflow/weir/internal/table"
)

// A snapshot is a header, records, and a checksum. Numbers are little endian;
// instants are in ns.
//
//	header    "weirsnap", version uint32, secret of the seed [32]byte,
//	          engine int64, wall int64: the two clocks when the save began
//	records   a byte that says which, and
//	  'N'     length uint16, name of a limit's states (rule, identity and ordinal,
//	          with NUL between), base int64, and a byte: 1 if the states have a table
//	          of their own, otherwise 0. Names are numbered from 0 in order.
//	  'R'     name uint32, and three int64: ticks of a unit, ticks of a ns, units
//	          without delay: a rate that wrote states in words. The rates of a name
//	          are numbered from 0 in order. The first follows the name of a bucket. A cycle
//	          has one: the permits of a cycle, 0 and 0.
//	  'L'     count uint8, that many columns of name uint32 and width uint8: a
//	          layout of entries. Layouts are numbered from 0 in order.
//	  'W'     layout uint32, count uint32, that many rows of a hash and the words of
//	          the layout's columns, uint64 each: states that fit in words
//	  'C'     name uint32, capacity int64, hash uint64, count uint32, that many
//	          int64: a state that does not fit, and the capacity of its limit
//	  'S'     the end of a shard: the hashes since the last end have the same low
//	          6 bits, 0 in the first shard and 63 in the last
//	  'E'     engine int64, wall int64: the clocks when the save ended;
//	          eviction int64: idle states were evicted up to this instant
//	checksum  CRC-32C of all before it, uint32
//
// Keys are not saved, and a hash needs the secret to mean anything. A program with
// the secret can make keys that share a budget.
const (
	magic         = "weirsnap"
	formatVersion = 1
	maxRows       = 1 << 12 // in one record
	maxRowBytes   = 8 * (1 + table.MaxWidth)
)

const (
	recordName  = 'N'
	recordRate  = 'R'
	recordTable = 'L'
	recordWords = 'W'
	recordCell  = 'C'
	recordShard = 'S'
	recordEnd   = 'E'
)

// The format depends on the number of shards, and the bytes of the secret. Here
// the compiler notices a change of either.
var _ = [1]struct{}{}[table.Shards-64|table.SecretBytes-32]

// SnapshotError reports why a snapshot was not loaded as a whole: see weir.SnapshotError.
type SnapshotError struct {
	Offset  int64
	Reason  string
	LeftOut []string
}

func (e *SnapshotError) Error() string {
	return fmt.Sprintf("the snapshot %s (after byte %d)", e.Reason, e.Offset)
}
