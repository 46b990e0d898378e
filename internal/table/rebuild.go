package table

import "slices"

// makeRoom replaces the segment of h, if d is still the directory. It says whether
// to look again: not if the shard may hold no more.
func (t *Table) makeRoom(s *shard, d *directory, h Hash, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.directory.Load() != d {
		return true
	}
	if d == nil {
		s.directory.Store(newDirectory(0, []segment{newSegment(minSlots, 0, 0)}))
		return true
	}
	if s.used.Load() >= s.most {
		return t.sweep(s, d, h, now)
	}
	at := d.Index(h)
	if !d.Segments[at].full() {
		return true // someone took the slot before us
	}
	s.directory.Store(t.replace(s, d, at, now))
	return true
}

// sweep drops the idle words of the next segment, for a shard that holds all it
// may. It says whether to look for h again: it is known, or there is room.
func (t *Table) sweep(s *shard, d *directory, h Hash, now int64) bool {
	if word, _ := d.segment(h).find(h); word != nil {
		return true
	}
	if !s.mayLook(now) {
		return false
	}
	s.looked.Store(now)
	at := s.turn(d)
	t.touch(&d.Segments[at])
	if idle, _ := t.idleAmong(d.Segments[at].slots[1:], now); idle == 0 {
		return false
	}
	s.directory.Store(t.replace(s, d, at, now))
	return s.used.Load() < s.most
}

// turn is the segment whose turn it is to be looked through.
func (s *shard) turn(d *directory) int {
	at := s.next % len(d.Segments)
	s.next = at + 1
	return at
}

// tidy replaces the next segment, if most of its words are idle.
func (t *Table) tidy(s *shard, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.directory.Load()
	at := s.turn(d)
	old := &d.Segments[at]
	t.touch(old)
	if len(old.slots)-1 > minSlots && t.mostlyIdle(old, now) {
		s.directory.Store(t.replace(s, d, at, now))
	}
}

// mostlyIdle judges by an eighth of the slots, which are as good as random.
func (t *Table) mostlyIdle(s *segment, now int64) bool {
	idle, used := t.idleAmong(s.slots[1:1+len(s.slots)/8], now)
	return 2*idle > used
}

func (t *Table) idleAmong(slots []slot, now int64) (idle, used int) {
	for i := range slots {
		if slots[i].tag.Load() == empty {
			continue
		}
		used++
		if t.isIdle(slots[i].word.Load(), now) {
			idle++
		}
	}
	return idle, used
}

func (t *Table) isIdle(word uint64, now int64) bool {
	return word == Fresh || word < Elsewhere && t.idle(word, now)
}

func (t *Table) touch(s *segment) {
	if t.touched != nil {
		t.touched(s)
	}
}

// replace freezes the segment at an index and puts its live words into one new
// segment, or two if they would be too many. The shard's lock is held.
func (t *Table) replace(s *shard, d *directory, at int, now int64) *directory {
	old := &d.Segments[at]
	var space [segmentSlots + 1]uint64
	words := space[:]
	if len(old.slots) > len(words) {
		words = make([]uint64, len(old.slots))
	}
	live, upper := t.freeze(s, old, words, now)
	d = newDirectory(d.Depth, slices.Clone(d.Segments))
	switch capacity := roomFor(live); {
	case live <= segmentSlots*2/3:
		capacity = min(max(capacity, len(d.Segments)/4), segmentSlots)
		d.Replace(at, old.depth, newSegment(capacity, old.depth, live))
	case old.depth >= MaxDepth(int(s.used.Load()), segmentSlots/8):
		d.Replace(at, old.depth, newSegment(capacity, old.depth, live))
	default:
		lower := live - upper
		d.Split(at, old.depth, newSegment(halfFor(lower), old.depth+1, lower), newSegment(halfFor(upper), old.depth+1, upper))
	}
	for i := 1; i < len(old.slots); i++ {
		if words[i] != Fresh {
			h := Hash(old.slots[i].tag.Load())
			d.segment(h).put(h, words[i])
		}
	}
	return d
}

// roomFor is the capacity for so many words: they fill ten of seventeen slots, so
// that a word takes 27.2 bytes at most.
func roomFor(live int) int { return max(minSlots, live+live*7/10+1) }

// halfFor is roomFor of a half of a split: no more than a segment's slots, but
// where they would all be in use.
func halfFor(live int) int {
	if live > segmentSlots*7/8 {
		return roomFor(live)
	}
	return min(roomFor(live), segmentSlots)
}

// freeze closes every slot and collects the live words. upper counts those that
// the next bit of the hash sends to the second half of a split.
func (t *Table) freeze(of *shard, s *segment, words []uint64, now int64) (live, upper int) {
	t.touch(s)
	left, dropped := 0, 0
	for i := 1; i < len(s.slots); i++ {
		slot := &s.slots[i]
		if slot.tag.CompareAndSwap(empty, frozen) {
			continue
		}
		word := slot.word.Swap(Moved)
		if t.isIdle(word, now) {
			left++
			if word != Fresh {
				dropped++
			}
			continue
		}
		words[i] = word
		live++
		upper += SplitBit(Hash(slot.tag.Load()), s.depth)
	}
	of.used.Add(-int64(left))
	t.dropped.Add(uint64(dropped))
	if dropped > 0 && now > t.swept.Load() {
		t.swept.Store(now)
	}
	return live, upper
}
