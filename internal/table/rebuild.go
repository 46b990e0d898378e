package table

import "sync/atomic"

// makeRoom replaces the segment of h if d is still the directory. It reports whether the caller should look again; it
// returns false at the bound on keys.
func (t *Table) makeRoom(s *shard, d *directory, h Hash, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.directory.Load() != d {
		return true
	}
	if d == nil {
		s.directory.Store(&directory{[]segment{newSegment(t.newest(), minSlots, 0, 0)}})
		return true
	}
	if s.used.Load() >= s.maxUsed {
		return t.sweep(s, d, h, now)
	}
	at := d.index(h)
	if !d.places[at].full() {
		return true // another caller replaced the segment first
	}
	s.directory.Store(t.replace(s, d, at, now))
	return true
}

// sweep drops the idle entries of the next segment of a shard at its bound. It reports whether the caller should look
// for h again, because h is known or there is room.
func (t *Table) sweep(s *shard, d *directory, h Hash, now int64) bool {
	if e, _ := d.segment(h).find(h); !e.None() {
		return true
	}
	if !s.maySweep(now) {
		return false
	}
	s.sweptAt.Store(now)
	at := s.nextToSweep(d)
	old := &d.places[at]
	t.touch(old)
	if idle, _ := t.idleAmong(old, int(old.room), now); idle == 0 {
		return false
	}
	s.directory.Store(t.replace(s, d, at, now))
	return s.used.Load() < s.maxUsed
}

// nextToSweep returns the index of the next segment to search.
func (s *shard) nextToSweep(d *directory) int {
	at := s.next % len(d.places)
	s.next = at + 1
	return at
}

// tidy replaces the next segment if most of its entries are idle, or if its layout is an earlier one.
func (t *Table) tidy(s *shard, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.directory.Load()
	at := s.nextToSweep(d)
	old := &d.places[at]
	t.touch(old)
	if old.room > minSlots && t.mostlyIdle(old, now) || old.layout != t.newest().number {
		s.directory.Store(t.replace(s, d, at, now))
	}
}

// mostlyIdle samples an eighth of the entries. Their hashes are random enough.
func (t *Table) mostlyIdle(s *segment, now int64) bool {
	idle, used := t.idleAmong(s, int(s.room)/8, now)
	return 2*idle > used
}

// idleAmong counts the idle entries and those in use among the first n of a segment.
func (t *Table) idleAmong(s *segment, n int, now int64) (idle, used int) {
	layout := t.layoutOf(s)
	for i := int(s.stride); i <= n*int(s.stride); i += int(s.stride) {
		if atomic.LoadUint64(s.tag(i)) == empty {
			continue
		}
		used++
		if s.entry(i).idle(layout, now) {
			idle++
		}
	}
	return idle, used
}

func (t *Table) layoutOf(s *segment) Layout { return (*t.layouts.Load())[s.layout] }

// idle reports whether the entry is idle. It seizes an entry of several words meanwhile.
func (e Entry) idle(layout Layout, now int64) bool {
	first := e.First()
	if len(e.Words) > 1 && first != Elsewhere {
		var seized bool
		if first, seized = e.Seize(false); seized {
			defer e.Release(first)
		}
	}
	return isIdle(layout, first, e.Words[1:], now)
}

// isIdle reports whether words that do not change mean the same as those of a new key.
func isIdle(layout Layout, first uint64, rest []uint64, now int64) bool {
	return first < Seized && (isFresh(first, rest) || layout.Idle(first, rest, now))
}

func isFresh(first uint64, rest []uint64) bool {
	for _, word := range rest {
		first |= word
	}
	return first == Fresh
}

func (t *Table) touch(s *segment) {
	if t.touched != nil {
		t.touched(s)
	}
}

// replace freezes the segment at an index and puts its live entries into one new segment of the newest layout, or into
// two if they would overfill one. The caller holds the shard's lock.
func (t *Table) replace(s *shard, d *directory, at int, now int64) *directory {
	old, l := &d.places[at], t.newest()
	var space [segmentSlots + 1]uint64
	firsts := space[:]
	if int(old.room) >= len(firsts) {
		firsts = make([]uint64, 1+old.room)
	}
	live, upper := t.freeze(s, old, firsts, now)
	var next *directory
	most := l.segmentRoom()
	switch room := l.roomFor(live); {
	case live <= most*2/3:
		next = d.with(at, newSegment(l, min(max(room, len(d.places)/16), most), old.depth, live))
	case old.depth >= maxDepth(int(s.used.Load()), most/8):
		next = d.with(at, newSegment(l, room, old.depth, live))
	default:
		lower := live - upper
		next = d.with(at, newSegment(l, l.halfFor(lower), old.depth+1, lower), newSegment(l, l.halfFor(upper), old.depth+1, upper))
	}
	t.copyLive(next, old, firsts, l)
	return next
}

// copyLive puts the live entries of a frozen segment into the new segments.
func (t *Table) copyLive(d *directory, old *segment, firsts []uint64, l numbered) {
	from := t.layoutOf(old)
	stride := int(old.stride)
	for n, first := range firsts[:1+old.room] {
		if first == dead {
			continue
		}
		i := n * stride
		h := Hash(atomic.LoadUint64(old.tag(i)))
		into := d.segment(h).put(h)
		if old.layout != l.number {
			l.Convert(from, first, old.slots[i+2:i+stride], into)
			continue
		}
		into[0] = first
		copy(into[1:], old.slots[i+2:i+stride])
	}
}

// dead stands for the first word of an entry that is not copied.
const dead = Moved

// roomFor returns the room for live entries. It fills ten of seventeen places, so that an entry of one word takes at
// most 27.2 bytes; of two words, ten of sixteen, 38.4 bytes.
func (l numbered) roomFor(live int) int {
	more := live * 7 / 10
	if l.Width() > 1 {
		more = live * 6 / 10
	}
	return max(minSlots, live+more+1)
}

// halfFor returns the room for one half of a split. It exceeds that of a full-size segment only for entries that
// would fill one.
func (l numbered) halfFor(live int) int {
	if most := l.segmentRoom(); live <= most*7/8 {
		return min(l.roomFor(live), most)
	}
	return l.roomFor(live)
}

// freeze closes every entry and collects the first words of the live ones. upper counts those that a split sends to
// the second half, by the next bit of the hash.
func (t *Table) freeze(owner *shard, s *segment, firsts []uint64, now int64) (live, upper int) {
	t.touch(s)
	layout := t.layoutOf(s)
	left, dropped := 0, 0
	firsts[0] = dead
	stride := int(s.stride)
	for n, i := 1, stride; i < len(s.slots); n, i = n+1, i+stride {
		firsts[n] = dead
		tag := s.close(i)
		if tag == frozen {
			continue
		}
		first, rest := s.entry(i).freeze(), s.slots[i+2:i+stride]
		if isIdle(layout, first, rest, now) {
			left++
			if !isFresh(first, rest) {
				dropped++
			}
			continue
		}
		firsts[n] = first
		live++
		upper += int(tag >> (ShardBits + s.depth) & 1)
	}
	owner.used.Add(-int64(left))
	t.dropped.Add(uint64(dropped))
	if dropped > 0 {
		t.Forgotten(now)
	}
	return live, upper
}
