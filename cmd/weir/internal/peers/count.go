package peers

import "sync"

// keptLooks is how many looks decide: as many as there are in ten minutes.
const keptLooks = int(keptTime / lookGap)

// count is the number of daemons over time. Looks that fail are none, so an outage of any length leaves it as it was.
type count struct {
	mu    sync.Mutex
	looks [keptLooks]int
	taken int
	peers int
}

// add takes over the number of a look, and returns the largest one of the kept looks, before and now.
func (c *count) add(seen int) (before, now int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before = c.peers
	c.looks[c.taken%keptLooks] = max(seen, 1)
	c.taken++
	c.peers = 1
	for _, n := range c.looks[:min(c.taken, keptLooks)] {
		c.peers = max(c.peers, n)
	}
	return before, c.peers
}

// number returns the largest number, and that of the last look, which is 0 before the first one.
func (c *count) number() (peers, seen int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken > 0 {
		seen = c.looks[(c.taken-1)%keptLooks]
	}
	return max(c.peers, 1), seen
}
