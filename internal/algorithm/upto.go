package algorithm

// TakeUpTo takes as many units as every part has room for, n at most and the same
// number from each: the costs of the parts are overwritten with it. None is a
// refusal, which is that of one unit. It says how many were taken.
func TakeUpTo(parts []Part, now, n int64) (taken int64, answer Answer) {
	taken = n
	for i := range parts {
		taken = min(taken, parts[i].Algorithm.Room(parts[i].State, now))
	}
	taken = max(taken, 0)
	cost := taken
	if n > 0 {
		cost = max(cost, 1)
	}
	for i := range parts {
		parts[i].Cost = cost
	}
	answer = Take(parts, now)
	if !answer.Allowed {
		return 0, answer
	}
	return cost, answer
}
