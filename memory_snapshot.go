package weir

import (
	"fmt"
	"io"

	"github.com/weirflow/weir/internal/memory"
)

// SnapshotError reports why a file is not a complete snapshot.
type SnapshotError struct {
	Offset int64 // the number of bytes that were valid
	Reason string
}

func (e *SnapshotError) Error() string {
	return fmt.Sprintf("weir: load: the snapshot %s (after byte %d)", e.Reason, e.Offset)
}

// Save writes the states of all keys, for LoadMemory. Decisions continue meanwhile. Save stores each key as it was at
// some instant during the save, so a snapshot may contain a decision on several keys for only some of them. It omits
// states that are indistinguishable from a new key.
//
// A snapshot contains the secret that the engine hashes keys with: keep it where only the program can read it. Save
// writes in large pieces.
func (m *Memory) Save(w io.Writer) error {
	if m.engine == nil {
		return m.refusal("save")
	}
	return m.engine.Save(w)
}

// LoadMemory returns an engine with the states that Save wrote. The engine's clock begins where the saved one ended,
// plus the time that has passed on the wall clock. If it is then ahead of the wall clock, it runs at 7/8 speed until
// they meet. A clock of the options is used unchanged.
//
// LoadMemory refuses a file that is not a snapshot, truncated, damaged, or of another version with a
// [*SnapshotError]. It wraps the errors of r. It reads all of r, in large pieces.
func LoadMemory(r io.Reader, options MemoryOptions) (*Memory, error) {
	m, engineOptions := newMemory(options)
	engine, err := memory.Load(r, engineOptions, algorithmOf)
	switch err := err.(type) {
	case nil:
		m.engine = engine
		return m, nil
	case *memory.SnapshotError:
		return nil, &SnapshotError{Offset: err.Offset, Reason: err.Reason}
	}
	return nil, fmt.Errorf("weir: load: %w", err)
}
