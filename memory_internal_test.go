package weir

import (
	"context"

	"github.com/weirflow/weir/internal/memory"
)

// SharingMemory is an engine in which no key finds room and every parent does. Unlike that of a Memory, its Reset
// also resets shared states.
type SharingMemory struct{ *Memory }

func NewSharingMemory(options MemoryOptions) SharingMemory {
	m, engineOptions := newMemory(options)
	engineOptions.MaxKeys = -1
	m.engine = memory.New(engineOptions)
	return SharingMemory{m}
}

func (m SharingMemory) Reset(ctx context.Context, requests ...Request) error {
	merged, err := m.merge(ctx, opReset, requests, 0, nil)
	if err != nil {
		return err
	}
	return m.engine.ResetShared(merged)
}
