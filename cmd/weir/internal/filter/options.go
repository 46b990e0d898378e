package filter

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// Options configure a Filter.
type Options struct {
	// Limits admit each line or byte, all at one instant. New refuses a Concurrency, because a filter never knows when
	// the work on a line is over.
	Limits []weir.Limit
	// Engine keeps the limits, which pipes of the same Name share. Default: nil; they belong to this filter.
	Engine weir.Engine
	Name   string
	// Patience bounds the time that the engine may keep failing before Run fails. Default: 0, the first failure.
	Patience time.Duration
	// Chunk is the largest number of bytes written at once. With Key each line costs its bytes, and lines stay whole.
	// Default: 0, which paces lines.
	Chunk int
	// Key returns the key of a line. Only lines of the same key then keep their order. Default: nil; all lines share
	// the limits and keep their order.
	Key func(line []byte) []byte
	// Fair makes all keys share the limits in turns. Default: each key has its own limits.
	Fair bool
	// Held bounds the lines that are held back while lines of other keys pass. Default: MaxHeld.
	Held int
	// Work, instead of a write, is called for each line without its newline, on a goroutine of its own. Its error ends
	// Run. Default: nil.
	Work func(ctx context.Context, line []byte) error
	// AtOnce is the number of calls of Work at a time. Its slots are a limit beside the others: each key has its own
	// unless Fair, and filters of the same Name share them.
	AtOnce int64
	// Moved receives the numbers of lines and bytes written since the last call. The goroutine of Run calls it from
	// time to time.
	Moved func(lines, bytes int64)
}

// The bounds of the held lines. A longer line waits until all earlier lines are written, and then passes in pieces.
const (
	MaxHeld     = 16384
	maxHeldSize = 16 << 20
	MaxLine     = 1 << 20
)

// StreamError is a failure of the input or the output.
type StreamError struct {
	Op  string // "read" or "write"
	Err error
}

func (e *StreamError) Error() string { return fmt.Sprintf("pace: %s: %v", e.Op, e.Err) }

func (e *StreamError) Unwrap() error { return e.Err }

// EngineError is a failure of the engine.
type EngineError struct{ Err error }

func (e *EngineError) Error() string { return "pace: engine: " + e.Err.Error() }

func (e *EngineError) Unwrap() error { return e.Err }
