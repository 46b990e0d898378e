package decide

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/seal"
)

// hold is the content of the id of a hold. The id is sealed like a token, so every daemon on the engine honours it. Its
// owner also repeats the requests, so it has only their hash.
type hold struct {
	Lease uint64        `json:"n"` // random; also names the hold
	Ends  int64         `json:"e"` // Unix milliseconds
	Life  time.Duration `json:"d"`
	Of    []byte        `json:"o"`           // the hash of the domain and the requests, without their costs
	Costs []int64       `json:"c,omitempty"` // that were taken, one for each request; none if nothing was
	Taken []int64       `json:"t,omitempty"` // weir.Call.Taken
	Links []int         `json:"w,omitempty"` // for each request how far behind it the one is that paid; none if all paid themselves
}

// remembered is how much longer than a hold its id is known. Marks last longer by settledFor.
const remembered = time.Minute

// newHold describes a hold of requests that begins now.
func newHold(domain string, requests []weir.Request, life time.Duration) *hold {
	return &hold{Lease: weir.Kit.NewLease(), Ends: time.Now().Add(life).UnixMilli(), Life: life, Of: hashOf(domain, requests)}
}

// hashOf returns a hash of the domain, rules, limits and keys of a hold.
func hashOf(domain string, requests []weir.Request) []byte {
	var text []byte
	add := func(s string) { text = append(binary.AppendUvarint(text, uint64(len(s))), s...) }
	add(domain)
	for _, q := range Links(requests) {
		add(q.Rule.String())
		add(q.Key)
	}
	sum := sha256.Sum256(text)
	return sum[:16]
}

// linksOf returns how far behind each request the one is that paid, or nil if all paid themselves.
func linksOf(asked, paid []weir.Request) (links []int) {
	for i := range asked {
		for n, q := 0, &asked[i]; q != nil; n, q = n+1, q.Otherwise {
			if n > 0 && sameKey(q, &paid[i]) {
				if links == nil {
					links = make([]int, len(asked))
				}
				links[i] = n
			}
		}
	}
	return links
}

// paid returns the requests that paid in place of those that were asked for.
func (h *hold) paid(requests []weir.Request) []weir.Request {
	paid := slices.Clone(requests)
	for i, n := range h.Links {
		for ; n > 0 && paid[i].Otherwise != nil; n-- {
			paid[i] = *paid[i].Otherwise
		}
	}
	return Alone(paid)
}

// held returns the requests at the costs that were taken.
func (h *hold) held(requests []weir.Request) []weir.Request {
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].Cost = h.Costs[i]
	}
	return requests
}

// after returns the time since the end of the hold, which is below 0 before.
func (h *hold) after() time.Duration { return time.Since(time.UnixMilli(h.Ends)) }

// The marks of a hold.
const (
	committed = "c" // its cost is counted
	over      = "o" // its units are settled, or came back
)

// mark returns the request for a mark.
func (h *hold) mark(what string) ([]weir.Request, error) {
	return markOf(h.Lease, what, h.Life+remembered+settledFor)
}

// holdKind keeps ids of holds and tokens of reservations apart.
const holdKind = "hold"

// id returns the id of a hold.
func (h *hold) id(secret []byte) string { return seal.Of(secret, holdKind, h) }

// holdIn returns the hold of an id that is still known, or nil.
func holdIn(secret []byte, id string) *hold {
	h := &hold{}
	if !seal.Open(secret, holdKind, id, h) || h.after() >= remembered {
		return nil
	}
	return h
}
