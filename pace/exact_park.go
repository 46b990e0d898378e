package pace

// A line that cannot go because of a key is parked there, in order of arrival, so that a look does not go through all
// lines that wait for one key. While the key is neither closed nor shut, the first parked line is among the ready ones:
// it stands for the others.

// park parks a line, which is in none of the heaps.
func (l *exact) park(line *exactLine, key *exactKey) {
	line.parkedAt = key
	key.parked.Put(line)
}

// unpark takes a line off its key, if it is parked.
func (line *exactLine) unpark() {
	if key := line.parkedAt; key != nil {
		line.parkedAt = nil
		key.parked.Remove(line)
	}
}

// advance makes the first parked line of an open key ready, unless an earlier one stands for it.
func (l *exact) advance(key *exactKey) {
	if key.closed || key.opens.planned() || key.parked.Len() == 0 || key.deputy != nil && byArrival(key.deputy, key.parked.First()) {
		return
	}
	line := key.parked.Pop()
	line.parkedAt, key.deputy = nil, line
	l.ready.Put(line)
}

// open makes a key available to its callers.
func (l *exact) open(key *exactKey) {
	l.later.drop(&key.opens)
	l.advance(key)
}

// relieve returns the keys for whose parked lines a ready line stood, which it does no longer.
func (line *exactLine) relieve() (keys []*exactKey) {
	for i := range line.uses {
		if key := line.uses[i].key; key.deputy == line {
			key.deputy = nil
			keys = append(keys, key)
		}
	}
	return keys
}
