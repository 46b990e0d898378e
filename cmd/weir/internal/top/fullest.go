package top

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// The bounds of the fullest keys of a rule.
const (
	mostFull  = 20               // keys
	mostFound = 8                // sampled keys that wait for a peek
	fullStays = 10 * time.Second // how long a key is shown at least, though its limit may be whole again
	fullAges  = 5 * time.Second  // after which a key is peeked at again
)

// Full is a key with its used units of the limit that leaves it least.
type Full struct {
	Rule  string `json:"rule"`
	Key   string `json:"key"` // up to keyBytes of it
	Used  int64  `json:"used"`
	Limit int64  `json:"limit"`
	At    int64  `json:"at"`            // of the decision or peek that said so, in seconds since 1970
	Cut   bool   `json:"cut,omitempty"` // Key is the beginning of a longer one

	Shadow bool `json:"shadow,omitempty"` // the rule is a shadow
}

// Share returns the used part of the limit: 1 is all of it, and a debt is more.
func (f *Full) Share() float64 { return float64(f.Used) / float64(f.Limit) }

// before compares two keys: the fuller one comes first, then the name of the rule and the key decide.
func (f *Full) before(other *Full) int {
	return cmp.Or(cmp.Compare(other.Share(), f.Share()), cmp.Compare(f.Rule, other.Rule), cmp.Compare(f.Key, other.Key))
}

// subject is a key under the rule that decides it, which may be a plan of the rule's name.
type subject struct {
	id              uint64
	rule            *weir.Rule
	key, colocation string
	shadow          bool // the rule refuses nobody
	cut             bool // the key is the beginning of a longer one, so it cannot be peeked at
}

// kept returns the subject in memory of its own. Long keys are cut, so that an attacker's keys take little.
func (s subject) kept() subject {
	s.key, s.cut = Kept(s.key)
	if s.cut = s.cut || len(s.colocation) > keyBytes; s.cut {
		s.colocation = ""
	}
	s.colocation = strings.Clone(s.colocation)
	return s
}

// full is a subject with its figures in a decision or a peek.
type full struct {
	subject
	used, limit int64
	at          time.Time // of that decision or peek
	looked      time.Time // when it was picked for a peek, or at
	ends        time.Time // when the limit is whole again, unless the key is used
}

func (f *full) share() float64 { return float64(f.used) / float64(f.limit) }

// fullest are the keys of a rule that have used most of their limit, as far as samples and peeks have shown.
type fullest struct {
	mu     sync.Mutex
	known  []full
	found  []subject
	picked time.Time // when a key was last picked
	last   bool      // that one was known
}

// says takes over what an answer leaves of the limit of a key.
func (f *fullest) says(s subject, d *weir.Decision, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.find(s.id)
	used := d.Limit - d.Remaining
	if d.Limit <= 0 || d.Limit >= weir.MaxCount || used <= 0 { // blocked, exempt or unused
		if at >= 0 {
			f.known = slices.Delete(f.known, at, at+1)
		}
		return
	}
	if at < 0 {
		if at = f.place(float64(used)/float64(d.Limit), now); at < 0 {
			return
		}
		f.known[at].subject = s.kept()
	}
	k := &f.known[at]
	k.shadow = s.shadow
	k.rule, k.used, k.limit, k.at, k.looked, k.ends = s.rule, used, d.Limit, now, now, now.Add(max(d.ResetAfter, fullStays))
}

// find returns the place of a known key, or -1.
func (f *fullest) find(id uint64) int {
	for i := range f.known {
		if f.known[i].id == id {
			return i
		}
	}
	return -1
}

// place makes room for a key that has used a share of its limit, and returns where, or -1 if all others have used as much.
func (f *fullest) place(share float64, now time.Time) int {
	if len(f.known) == mostFull {
		f.expire(now)
	}
	if len(f.known) < mostFull {
		f.known = append(f.known, full{})
		return len(f.known) - 1
	}
	if least := f.least(); share > f.known[least].share() {
		return least
	}
	return -1
}

// least returns the place of the known key that has used least.
func (f *fullest) least() (at int) {
	for i := range f.known {
		if f.known[i].share() < f.known[at].share() {
			at = i
		}
	}
	return at
}

// expire drops keys whose limit is whole again.
func (f *fullest) expire(now time.Time) {
	f.known = slices.DeleteFunc(f.known, func(k full) bool { return now.After(k.ends) })
}

// finds takes note of a sampled key that a peek should look at.
func (f *fullest) finds(s subject, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.found) >= mostFound {
		return
	}
	if at := f.find(s.id); at >= 0 && now.Sub(f.known[at].looked) < fullAges || slices.ContainsFunc(f.found, func(k subject) bool { return k.id == s.id }) {
		return
	}
	if s = s.kept(); !s.cut {
		f.found = append(f.found, s)
	}
}

// pick returns a key to peek at: in turn one that a sample has found, and the known one that was looked at longest ago.
func (f *fullest) pick(now time.Time) (s subject, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expire(now)
	oldest := -1
	for i := range f.known {
		if k := &f.known[i]; !k.cut && now.Sub(k.looked) >= fullAges && (oldest < 0 || k.looked.Before(f.known[oldest].looked)) {
			oldest = i
		}
	}
	switch {
	case oldest >= 0 && (len(f.found) == 0 || !f.last):
		f.known[oldest].looked, f.picked, f.last = now, now, true
		return f.known[oldest].subject, true
	case len(f.found) > 0:
		s = f.found[0]
		f.found = slices.Delete(f.found, 0, 1)
		f.picked, f.last = now, false
		return s, true
	}
	return s, false
}

// turn marks all keys as those of a shadow, or of none.
func (f *fullest) turn(shadow bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.known {
		f.known[i].shadow = shadow
	}
	for i := range f.found {
		f.found[i].shadow = shadow
	}
}

// clear forgets all keys.
func (f *fullest) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known, f.found = nil, nil
}

// list appends the known keys.
func (f *fullest) list(to []Full, now time.Time) []Full {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expire(now)
	for i := range f.known {
		k := &f.known[i]
		to = append(to, Full{Rule: k.rule.Name(), Key: k.key, Used: k.used, Limit: k.limit, At: k.at.Unix(), Cut: k.cut, Shadow: k.shadow})
	}
	return to
}

// Fullest returns the n keys that have used most of their limit under a rule, or under any for "", the fullest first.
func (k *Keys) Fullest(rule string, n int) []Full {
	all, now := []Full{}, time.Now()
	k.each(rule, func(_ string, r *ruleKeys) {
		all = r.fullest.list(all, now)
		if rule == "" && len(all) > 4*n+mostFull {
			all = fullestOf(all, n)
		}
	})
	return fullestOf(all, n)
}

// Fullests returns the fullest key of each rule that has one.
func (k *Keys) Fullests() map[string]Full {
	all, list, now := map[string]Full{}, []Full{}, time.Now()
	k.each("", func(name string, r *ruleKeys) {
		if list = fullestOf(r.fullest.list(list[:0], now), 1); len(list) > 0 {
			all[name] = list[0]
		}
	})
	return all
}

func fullestOf(all []Full, n int) []Full {
	slices.SortFunc(all, func(a, b Full) int { return a.before(&b) })
	return all[:min(n, len(all))]
}
