package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
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
	Lease() uint64
}

// tokens are the open reservations. A token names one, and cannot be guessed. It ends when it is settled, and otherwise
// with its life: the slots are then released, and other units stay spent.
type tokens struct {
	places places

	mu   sync.Mutex
	open map[string]*held
}

// held is one open reservation.
type held struct {
	holder
	requests int       // that were reserved
	slots    weir.Call // a record of the slots, to be renewed; of nothing without slots
	places   int       // that the reservation takes
	life     time.Duration
	ends     time.Time // the lock of tokens guards it
	reset    bool      // a reset has ended some of the slots; the lock of tokens guards it
	timer    *time.Timer
	turn     sync.Mutex // one settlement or renewal at a time
}

func newTokens(most int) *tokens {
	return &tokens{places: places{most: most}, open: map[string]*held{}}
}

// keep opens a reservation of requests, whose shortest lease of a slot may be 0. It returns the life of the token, too.
func (t *tokens) keep(hold holder, requests []weir.Request, lease time.Duration, places int) (token string, life time.Duration) {
	life = cmp.Or(lease, tokenLife)
	slots := weir.Call{Op: weir.OpRecord, Requests: slotsOf(requests), Lease: hold.Lease()}
	return t.add(&held{holder: hold, requests: len(requests), slots: slots, places: places, life: life}), life
}

// slotsOf returns the requests for slots alone.
func slotsOf(requests []weir.Request) (slots []weir.Request) {
	for _, q := range requests {
		if alone := q.Rule.Held(); alone != nil && q.Cost > 0 {
			q.Rule = alone
			slots = append(slots, q)
		}
	}
	return slots
}

// add opens a reservation.
func (t *tokens) add(h *held) string {
	token := rand.Text()
	t.mu.Lock()
	defer t.mu.Unlock()
	h.ends = time.Now().Add(h.life)
	h.timer = time.AfterFunc(h.life, func() { t.expire(token) })
	t.open[token] = h
	return token
}

// lose marks the reservations whose slots a reset has ended.
func (t *tokens) lose(requests []weir.Request) {
	type state struct{ rule, key string }
	ended := make(map[state]bool, len(requests))
	for _, q := range requests {
		ended[state{q.Rule.Name(), q.Key}] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.open {
		h.reset = h.reset || slices.ContainsFunc(h.slots.Requests, func(q weir.Request) bool { return ended[state{q.Rule.Name(), q.Key}] })
	}
}

// lost reports whether slots of the reservation have ended before their time.
func (t *tokens) lost(h *held) bool {
	select {
	case <-h.Lost():
		return true
	default:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return h.reset
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
		t.forget(token, h)
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
	t.forget(token, h)
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), undoWithin)
	defer cancel()
	_ = h.Done(ctx)
}

// forget drops a reservation. The caller holds the lock.
func (t *tokens) forget(token string, h *held) {
	delete(t.open, token)
	t.places.leave(h.places)
}

// count returns the number of open reservations.
func (t *tokens) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// undoWithin bounds an undo.
const undoWithin = time.Second
