package redistest

import "strconv"

// Move is a slot on its way from one master to another. Meanwhile the old master serves the keys that it still has,
// and answers ASK for all others.
type Move struct {
	From, To *Server
	number   int
	slot     string
	cluster  *Cluster
}

// BeginMove begins to move a slot. Its keys stay until [Move.Keys], and the slot until [Move.Finish].
func (c *Cluster) BeginMove(slot int, to *Server) *Move {
	c.t.Helper()
	m := &Move{From: c.Master(slot), To: to, number: slot, slot: strconv.Itoa(slot), cluster: c}
	if m.From == to {
		c.t.Fatalf("redistest: cluster: slot %d is on %s already", slot, to.Addr)
	}
	to.Do("CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.From.id())
	m.From.Do("CLUSTER", "SETSLOT", m.slot, "MIGRATING", to.id())
	return m
}

// Resume begins the move again after a failover of either side: a replica that became a master knows nothing of it. It
// waits until the two masters know each other.
func (m *Move) Resume() {
	m.cluster.t.Helper()
	m.cluster.await("the move of a slot can go on", func() error {
		m.From, m.To = m.cluster.Master(m.number), m.cluster.masterOf(m.To)
		if m.From == m.To {
			return nil
		}
		if _, err := m.To.Ask("CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.From.id()); err != nil {
			return err
		}
		_, err := m.From.Ask("CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.To.id())
		return err
	})
}

// Keys moves up to count keys and returns the number of keys moved.
func (m *Move) Keys(count int) int {
	m.cluster.t.Helper()
	keys, _ := m.From.Do("CLUSTER", "GETKEYSINSLOT", m.slot, strconv.Itoa(count)).([]any)
	for _, key := range keys {
		m.From.Do("MIGRATE", "127.0.0.1", strconv.Itoa(m.To.Port), key.(string), "0", "5000")
	}
	return len(keys)
}

// Finish moves the remaining keys and gives the slot to its new master.
func (m *Move) Finish() {
	m.cluster.t.Helper()
	for m.From != m.To && m.Keys(100) > 0 {
	}
	id := m.To.id()
	m.To.Do("CLUSTER", "SETSLOT", m.slot, "NODE", id)
	m.From.Do("CLUSTER", "SETSLOT", m.slot, "NODE", id)
}
