package weir

import (
	"errors"
	"fmt"
	"io"
)

// A snapshot is a header, records, and a checksum. Numbers are little endian;
// instants are in ns.
//
//	header    "weirsnap", version uint32, secret of the seed [32]byte,
//	          engine int64, wall int64: the two clocks when the save began
//	records   a byte that says which, and
//	  'N'     length uint16, name of a limit's state (rule, identity and ordinal,
//	          with NUL between), base int64. Names are numbered from 0 as they come.
//	  'W'     name uint32, count uint32, so many pairs of hash and word, uint64
//	          each: states of the name's limit that fit a word
//	  'C'     name uint32, capacity int64, length uint16, key, count uint32, so
//	          many int64: a state that does not, and the capacity of its limit
//	  'S'     the end of a shard: what came since the last one had hashes with
//	          the same low 6 bits, 0 at first and 63 at last
//	  'E'     engine int64, wall int64: the clocks when the save ended;
//	          swept int64: idle states were forgotten up to this instant
//	checksum  CRC-32C of all before it, uint32
//
// Keys are not saved, and a hash needs the secret to mean anything. Whoever has
// the secret can make keys that share a budget.
const (
	snapshotMagic   = "weirsnap"
	snapshotVersion = 3
	mostPairs       = 1 << 12 // in one record
)

const (
	recordName  = 'N'
	recordWords = 'W'
	recordCell  = 'C'
	recordShard = 'S'
	recordEnd   = 'E'
)

// ErrSnapshot is wrapped by every SnapshotError: a file that is no snapshot, or
// not a whole one.
var ErrSnapshot = errors.New("bad snapshot")

// SnapshotError says why a snapshot was refused.
type SnapshotError struct {
	Offset int64 // how many bytes had been understood
	Reason string
}

func (e *SnapshotError) Error() string {
	return fmt.Sprintf("weir: load: the snapshot %s (after byte %d)", e.Reason, e.Offset)
}

func (e *SnapshotError) Unwrap() error { return ErrSnapshot }

// Save writes the states of all keys, for LoadMemory. Decisions go on meanwhile:
// each key is saved as it was at some instant during the save, so a decision on
// several keys may be in it for some of them only. What nobody could tell from a
// fresh key is left out.
//
// A snapshot holds the secret that the engine hashes keys with: let nobody else
// read it. It is written in large pieces.
func (m *Memory) Save(w io.Writer) error {
	if m.clock == nil {
		return m.refusal("save")
	}
	s := saving{
		memory: m,
		out:    snapshotWriter{w: w},
		names:  map[*limitTable]uint32{},
		start:  m.clock.Pair(),
	}
	s.header()
	for i := range m.shards {
		s.words(i)
		s.cells(i)
		s.out.flush()
	}
	s.end()
	if s.out.err != nil {
		return fmt.Errorf("weir: save: %w", s.out.err)
	}
	return nil
}

// LoadMemory makes an engine of what Save wrote, as time has moved it: its clock
// begins where the saved one ended, plus the time that has passed since on the
// wall clock, if any. If it is then ahead of the wall clock, it runs at 7/8 speed
// until they meet. A clock of the options is taken as it is.
//
// What is no snapshot, not a whole one, damaged, or of another version is
// refused with a [*SnapshotError], and errors of r are returned as they are,
// wrapped. All of r is read, in large pieces.
func LoadMemory(r io.Reader, options MemoryOptions) (*Memory, error) {
	return load(r, NewMemory(options))
}

// load fills an engine that nobody has asked yet.
func load(r io.Reader, into *Memory) (*Memory, error) {
	l := loading{memory: into, in: newSnapshotReader(r), known: map[string]bool{}}
	l.header()
	for !l.ended && l.in.err == nil {
		l.record()
	}
	l.in.end()
	if l.in.err != nil {
		return nil, l.in.err
	}
	return l.memory, nil
}
