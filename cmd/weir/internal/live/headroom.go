package live

import (
	"sync"
	"unicode/utf8"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// headroom knows how near to its limit the fullest key of each rule has come, by the decisions of this step and the last.
type headroom struct {
	mu    sync.Mutex
	rules map[string]*fullest
}

// fullest is the least share of the limit that a decision has left, in this step and the last.
type fullest struct{ now, last left }

// left is what remains to a key.
type left struct {
	known bool
	share float64 // of the limit, 0 to 1
	key   string
}

// The bounds of what is kept.
const (
	mostFullest = 1000 // rules; further ones have no headroom
	keyBytes    = 256
)

// seen takes note of a decision. One that refuses leaves what the key has, which may be less than its cost.
func (h *headroom) seen(o *layer.Observation) {
	d := &o.Decision
	if d.Limit <= 0 || d.Limit == weir.MaxCount { // blocked or exempt by an override
		return
	}
	share := float64(max(d.Remaining, 0)) / float64(d.Limit)
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.rules[o.Rule]
	if f == nil {
		if len(h.rules) >= mostFullest {
			return
		}
		f = &fullest{}
		h.rules[o.Rule] = f
	}
	if !f.now.known || share < f.now.share {
		f.now = left{true, share, kept(o.Key)}
	}
}

// turn ends a step.
func (h *headroom) turn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, f := range h.rules {
		if f.last, f.now = f.now, (left{}); !f.last.known {
			delete(h.rules, name)
		}
	}
}

// of returns the least that a key of a rule has left.
func (h *headroom) of(rule string) left {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.rules[rule]
	switch {
	case f == nil:
		return left{}
	case !f.now.known || f.last.known && f.last.share < f.now.share:
		return f.last
	}
	return f.now
}

// kept returns a copy of up to keyBytes of a key: the caller's one may be part of something large.
func kept(key string) string {
	end := min(len(key), keyBytes)
	for end < len(key) && end > keyBytes-utf8.UTFMax && !utf8.RuneStart(key[end]) {
		end--
	}
	return string(append([]byte(nil), key[:end]...))
}
