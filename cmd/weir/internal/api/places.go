package api

import (
	"sync"

	"github.com/weirflow/weir"
)

// places bound what callers hold in memory. A caller with large requests takes several.
type places struct {
	most int

	mu    sync.Mutex
	taken int
}

// The memory that a place stands for, in bytes of requests.
const (
	tokenBytes   = 1 << 10
	waitingBytes = 16 << 10
)

// requestBytes is the memory of a request besides its key.
const requestBytes = 256

// sizeOf returns the memory of requests in bytes.
func sizeOf(requests []weir.Request) (bytes int) {
	for i := range requests {
		bytes += requestBytes + len(requests[i].Key)
	}
	return bytes
}

// claim takes n places, or returns 0 if they are not free. A caller that needs more than there are takes all.
func (p *places) claim(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n = min(n, p.most); p.taken+n > p.most {
		return 0
	}
	p.taken += n
	return n
}

// leave gives places back.
func (p *places) leave(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= n
}
