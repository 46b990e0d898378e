package algorithm

// Rings of 4, 10 and 22 entries stand beside their header in memory: 96, 192 or 384 bytes, which the allocator does not
// round up. A decision on a key that is in no cache therefore loads one line less. Each ring has room for about twice
// as many entries as the one before.
const (
	firstRing  = 4
	secondRing = 10
	thirdRing  = 22
)

// grow moves the entries to a larger ring that begins with the oldest.
func (l *log) grow(most int64) {
	if l.single() {
		header, ring := newRing(max(min(firstRing, most), 2)) // the caller adds a second entry
		ring[0], ring[1] = l.C, l.B
		l.B, l.C, l.Log = 0, 0, header
		*header = ring[:2]
		return
	}
	length, old := l.length(), l.ring()
	header, ring := newRing(max(min(int64(2*length+2), most), int64(length+1+length/8)))
	tail := copy(ring, old[l.C:][:min(2*length, len(old)-int(l.C))])
	copy(ring[tail:2*length], old)
	l.C, l.Log = 0, header
	*header = ring[:2*length]
}

// newRing returns a ring of a number of entries and the place of its header.
func newRing(entries int64) (header *[]int64, ring []int64) {
	switch {
	case entries <= firstRing:
		r := &struct {
			header  []int64
			entries [2 * firstRing]int64
		}{}
		return &r.header, r.entries[: 2*entries : 2*entries]
	case entries <= secondRing:
		r := &struct {
			header  []int64
			entries [2 * secondRing]int64
		}{}
		return &r.header, r.entries[: 2*entries : 2*entries]
	case entries == thirdRing: // a smaller one would waste too many bytes
		r := &struct {
			header  []int64
			entries [2 * thirdRing]int64
		}{}
		return &r.header, r.entries[: 2*entries : 2*entries]
	}
	return new([]int64), make([]int64, 2*entries)
}
