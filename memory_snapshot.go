package weir

import (
	"fmt"
	"io"
	"strings"

	"github.com/weirflow/weir/internal/memory"
)

// SnapshotError reports why a file was not loaded as a complete snapshot.
type SnapshotError struct {
	Offset int64 // the number of bytes that were valid
	Reason string
	// LeftOut is set if the file is complete and its checksum is right, and the program does not understand some of its
	// states. Each text names the rule, the limit, the number of states and the reason. All other states were loaded.
	LeftOut []string
}

func (e *SnapshotError) Error() string {
	text := fmt.Sprintf("weir: load: the snapshot %s (after byte %d)", e.Reason, e.Offset)
	if len(e.LeftOut) > 0 {
		text += ": " + strings.Join(e.LeftOut, "; ")
	}
	return text
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
// LoadMemory refuses a file that is truncated, damaged, or of another version with a [*SnapshotError], and a file with
// states that the program does not understand. Beside that error it returns an engine with the states that it could
// read, for a caller that would rather lose the others than all. The engine is nil if the file is not a snapshot.
// LoadMemory wraps the errors of r. It reads all of r, in large pieces.
func LoadMemory(r io.Reader, options MemoryOptions) (*Memory, error) {
	m, engineOptions := newMemory(options)
	engine, err := memory.Load(r, engineOptions, algorithmOf)
	if m.engine = engine; engine == nil {
		m = nil
	}
	switch err := err.(type) {
	case nil:
		return m, nil
	case *memory.SnapshotError:
		return m, &SnapshotError{Offset: err.Offset, Reason: err.Reason, LeftOut: err.LeftOut}
	}
	return nil, fmt.Errorf("weir: load: %w", err)
}
