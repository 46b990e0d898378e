package algorithm

// PeekAfter returns the answer that Take would give right after taken units of each part were taken.
func PeekAfter(parts []Part, now, taken int64) Answer {
	for i := range parts {
		if p := &parts[i]; taken > 0 {
			p.State = p.State.Clone()
			TakeFor(p.Algorithm, &p.State, now, taken, p.Lease)
		}
	}
	return Peek(parts, now)
}

// TakeUpTo takes the costs of all parts as many times as they fit, up to most times. It returns that number and
// multiplies the costs by it. If they do not fit once, the refusal is that of the costs taken once.
func TakeUpTo(parts []Part, now, most int64) (times int64, answer Answer) {
	times = most
	for i := range parts {
		if p := &parts[i]; p.Cost > 0 {
			times = min(times, p.Algorithm.Room(p.State, now)/p.Cost)
		}
	}
	once := min(most, 1)
	for i := range parts {
		parts[i].Cost *= max(times, once, 0)
	}
	answer = Take(parts, now)
	if !answer.Allowed {
		return 0, answer
	}
	return max(times, once, 0), answer
}
