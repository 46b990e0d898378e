package api

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// tokenLife is the life of a token without slots. A token with slots lives as long as their lease.
const tokenLife = time.Minute

// holder is a reservation: a *weir.Reservation, or a *pace.Acquired, which also wakes a waiting caller.
type holder interface {
	Settle(ctx context.Context, actual ...int64) error
	Done(ctx context.Context) error
	Lost() <-chan struct{}
}

// tokens are the open reservations. A token names one, and cannot be guessed. It ends when it is settled, and otherwise
// with its life: the slots are then released, and other units stay spent.
type tokens struct {
	most int

	mu      sync.Mutex
	open    map[string]*held
	claimed int // places for reservations that are being made
}

// held is one open reservation.
type held struct {
	holder
	slots []weir.Request // the slots, to be renewed; nil without
	life  time.Duration
	ends  time.Time // the lock of tokens guards it
	timer *time.Timer
	turn  sync.Mutex // one settlement or renewal at a time
}

func newTokens(most int) *tokens { return &tokens{most: most, open: map[string]*held{}} }

// claim keeps a place for a reservation, if there is one.
func (t *tokens) claim() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open)+t.claimed >= t.most {
		return false
	}
	t.claimed++
	return true
}

func (t *tokens) unclaim() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.claimed--
}

// add opens a reservation, for which its caller has a place.
func (t *tokens) add(h holder, life time.Duration, slots []weir.Request) string {
	token := rand.Text()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[token] = &held{
		holder: h, slots: slots, life: life, ends: time.Now().Add(life),
		timer: time.AfterFunc(life, func() { t.expire(token) }),
	}
	return token
}

// find returns an open reservation, or nil.
func (t *tokens) find(token string) *held {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.open[token]; h != nil && time.Now().Before(h.ends) {
		return h
	}
	return nil // its timer may be late
}

// renewMargin is the end of a token's life in which it cannot be renewed: the lease of its slots began a little
// earlier.
const renewMargin = 100 * time.Millisecond

// renewable reports whether a reservation is open and its slots certainly are, too.
func (t *tokens) renewable(token string, h *held) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[token] == h && time.Until(h.ends) > min(renewMargin, h.life/10)
}

// extend gives a reservation its life again, from an instant on. It returns false if the reservation has ended.
func (t *tokens) extend(token string, from time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.open[token]
	if h == nil {
		return false
	}
	h.ends = from.Add(h.life)
	h.timer.Reset(time.Until(h.ends))
	return true
}

// end forgets a settled reservation.
func (t *tokens) end(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.open[token]; h != nil {
		h.timer.Stop()
		delete(t.open, token)
	}
}

// expire ends a reservation whose life is over, unless it was renewed meanwhile. If the release of its slots fails,
// their lease ends them: the engine renews no reservation that is forgotten.
func (t *tokens) expire(token string) {
	t.mu.Lock()
	h := t.open[token]
	if h == nil || time.Now().Before(h.ends) {
		t.mu.Unlock()
		return
	}
	delete(t.open, token)
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), undoWithin)
	defer cancel()
	_ = h.Done(ctx)
}

// count returns the number of open reservations.
func (t *tokens) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// newLease returns an identity of slots that cannot be guessed.
func newLease() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint64(b[:]) | 1
}
