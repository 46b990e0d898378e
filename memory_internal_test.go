package weir

import "context"

// SharingMemory is an engine in which no key finds room and every parent does.
// Its Reset resets shared states, which that of a Memory leaves alone.
type SharingMemory struct{ *Memory }

func NewSharingMemory(options MemoryOptions) SharingMemory {
	m := NewMemory(options)
	m.maxKeys, m.maxParents = -1, 0
	return SharingMemory{m}
}

func (m SharingMemory) Reset(ctx context.Context, requests ...Request) error {
	var space callSpace
	c, err := m.gather(ctx, opReset, requests, &space)
	if err != nil {
		return err
	}
	now, err := m.lock(opReset, &c, m.clock.Now())
	if err != nil {
		return err
	}
	defer m.unlock(&c, now)
	for i := range c.slots {
		c.slots[i].reset()
	}
	return nil
}
