package top

import (
	"strings"
	"unicode/utf8"
)

const (
	sketchKeys = 64
	keyBytes   = 256 // of a key that are kept
)

// sketch is Space-Saving (Metwally, Agrawal and El Abbadi, 2005): a key that is not in the list replaces the one with the
// smallest count, and inherits that count as its possible overcount. A key with more than a 64th of all calls is in it.
type sketch struct {
	ids     []uint64 // apart from the entries, because each sample reads all of them
	entries []entry
}

type entry struct {
	key              string
	cut              bool
	count, overcount uint64
}

func (s *sketch) add(id uint64, key string, weight uint64) {
	smallest := 0
	for i, known := range s.ids {
		if known == id {
			s.entries[i].count += weight
			return
		}
		if s.entries[i].count < s.entries[smallest].count {
			smallest = i
		}
	}
	e := entry{count: weight}
	e.key, e.cut = Kept(key)
	if len(s.ids) < sketchKeys {
		s.ids, s.entries = append(s.ids, id), append(s.entries, e)
		return
	}
	e.overcount = s.entries[smallest].count
	e.count += e.overcount
	s.ids[smallest], s.entries[smallest] = id, e
}

func (s *sketch) halve(times int) {
	for i := range s.entries {
		s.entries[i].count >>= times
		s.entries[i].overcount >>= times
	}
}

// list appends the keys with their counts.
func (s *sketch) list(all []Count, rule string) []Count {
	for _, e := range s.entries {
		if e.count > 0 {
			all = append(all, Count{Rule: rule, Key: e.key, Count: e.count, Overcount: e.overcount, Cut: e.cut})
		}
	}
	return all
}

// Kept returns a copy of the kept part of a key: the caller's one may be part of something large.
func Kept(key string) (text string, cut bool) {
	if len(key) <= keyBytes {
		return strings.Clone(key), false
	}
	end := keyBytes
	for end > keyBytes-utf8.UTFMax && !utf8.RuneStart(key[end]) {
		end--
	}
	return strings.Clone(key[:end]), true
}
