package table

import "slices"

// makeRoom replaces the segment of h if d is still the directory. It reports whether the caller should look again; it
// returns false at the bound on keys.
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
	if s.used.Load() >= s.maxUsed {
		return t.sweep(s, d, h, now)
	}
	at := d.Index(h)
	if !d.Segments[at].full() {
		return true // another caller took the slot first
	}
	s.directory.Store(t.replace(s, d, at, now))
	return true
}

// sweep drops the idle words of the next segment of a shard at its bound. It reports whether the caller should look
// for h again, because h is known or there is room.
func (t *Table) sweep(s *shard, d *directory, h Hash, now int64) bool {
	if word, _ := d.segment(h).find(h); word != nil {
		return true
	}
	if !s.maySweep(now) {
		return false
	}
	s.sweptAt.Store(now)
	at := s.nextToSweep(d)
	t.touch(&d.Segments[at])
	if idle, _ := t.idleAmong(d.Segments[at].slots[1:], now); idle == 0 {
		return false
	}
	s.directory.Store(t.replace(s, d, at, now))
	return s.used.Load() < s.maxUsed
}

// nextToSweep returns the index of the next segment to search.
func (s *shard) nextToSweep(d *directory) int {
	at := s.next % len(d.Segments)
	s.next = at + 1
	return at
}

// tidy replaces the next segment if most of its words are idle.
func (t *Table) tidy(s *shard, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.directory.Load()
	at := s.nextToSweep(d)
	old := &d.Segments[at]
	t.touch(old)
	if len(old.slots)-1 > minSlots && t.mostlyIdle(old, now) {
		s.directory.Store(t.replace(s, d, at, now))
	}
}

// mostlyIdle samples an eighth of the slots. Their hashes are as good as random.
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

// replace freezes the segment at an index and puts its live words into one new segment, or into two if they would
// overfill one. The caller holds the shard's lock.
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

// roomFor returns the capacity for live words. It fills ten of seventeen slots, so that a word takes at most 27.2
// bytes.
func roomFor(live int) int { return max(minSlots, live+live*7/10+1) }

// halfFor returns the capacity for one half of a split. It exceeds segmentSlots only for words that would fill a
// segment.
func halfFor(live int) int {
	if live > segmentSlots*7/8 {
		return roomFor(live)
	}
	return min(roomFor(live), segmentSlots)
}

// freeze closes every slot and collects the live words. upper counts the words that a split sends to the second half,
// by the next bit of the hash.
func (t *Table) freeze(owner *shard, s *segment, words []uint64, now int64) (live, upper int) {
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
	owner.used.Add(-int64(left))
	t.dropped.Add(uint64(dropped))
	if dropped > 0 && now > t.swept.Load() {
		t.swept.Store(now)
	}
	return live, upper
}
