package weir

import (
	"errors"
	"fmt"
	"io"

	"github.com/weirflow/weir/internal/memory"
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
// several keys may be in the snapshot for some of them only. Save omits states that
// are indistinguishable from a new key.
//
// A snapshot holds the secret that the engine hashes keys with: let nobody else
// read it. Save writes in large pieces.
func (m *Memory) Save(w io.Writer) error {
	if m.engine == nil {
		return m.refusal("save")
	}
	return m.engine.Save(w)
}

// LoadMemory makes an engine of what Save wrote. The engine's clock begins where
// the saved one ended, plus the time that has passed since on the wall clock, if
// any. If it is then ahead of the wall clock, it runs at 7/8 speed until they meet.
// A clock of the options is taken as it is.
//
// LoadMemory refuses a file that is no snapshot, cut short, damaged, or of another
// version with a [*SnapshotError]. It returns errors of r as they are, wrapped. It
// reads all of r, in large pieces.
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
