package simulate

// daemonOf returns which of n daemons has a client. It is a model of consistent hashing: each client ranks all daemons
// by a hash, and goes to the first that is there. So the clients of a daemon that goes spread evenly over the others,
// and no others move. Real proxies do the same with points on a ring, less evenly.
func daemonOf(client uint32, n int) (daemon int) {
	best := uint64(0)
	for i := range n {
		if rank := mix(uint64(client)<<32 | uint64(i)); rank >= best {
			daemon, best = i, rank
		}
	}
	return daemon
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// moved returns the number of clients that move when the last daemon is lost, and move back when it returns.
func (s *Scenario) moved(clients int) (n int) {
	if s.Sticky == 0 || s.Lose == 0 {
		return 0
	}
	for client := range clients {
		if daemonOf(uint32(client), s.Sticky) == s.Sticky-1 {
			n++
		}
	}
	return n
}
