package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// Pattern is made-up traffic: the instants at which requests come, the clients that send them, and their costs.
// Create it with [ParsePattern].
type Pattern struct {
	text    string
	streams []stream
}

// stream is one part of a pattern. Its clients are its own.
type stream struct {
	arrivals arrivals
	least    float64    // requests per nanosecond that surely come, on average
	log      *logStream // instead of arrivals
	clients  clients
	costs    costs
	retry    retry
}

// String returns the text of the pattern.
func (p Pattern) String() string { return p.text }

// offer is one request.
type offer struct {
	at     int64  // nanoseconds after the start
	client uint32 // those of all streams are numbered through
	cost   uint32
}

// maxOffered bounds the requests of a run or a phase, and with them its memory.
const maxOffered = 10_000_000

// offers returns the requests of the given length of time, in order, and the number of clients. Equal seeds give
// equal offers.
func (p Pattern) offers(length time.Duration, seed uint64) (all []offer, clients int, err error) {
	if length < 1 || length > weir.MaxPeriod {
		return nil, 0, fmt.Errorf("simulate: traffic %q: a length of %v is not within 1ns and %d days", p.text, length, weir.MaxPeriod/(24*time.Hour))
	}
	if len(p.streams) == 0 {
		return nil, 0, errors.New("simulate: the traffic is empty: make it with ParsePattern")
	}
	for i := range p.streams {
		s := &p.streams[i]
		if s.log != nil && s.log.traffic == nil {
			return nil, 0, fmt.Errorf("simulate: traffic %q: the log %s was not read", p.text, s.log.name)
		}
		if s.least*float64(length) > maxOffered+1 { // it need not make them all to know
			return nil, 0, p.tooMany(length)
		}
		all = s.offer(all, length, uint32(clients), draws{seed, uint64(i)})
		clients += s.population()
	}
	if len(all) > maxOffered {
		return nil, 0, p.tooMany(length)
	}
	if len(p.streams) > 1 {
		slices.SortStableFunc(all, func(a, b offer) int { return cmp.Compare(a.at, b.at) })
	}
	return all, clients, nil
}

func (p Pattern) tooMany(length time.Duration) error {
	return fmt.Errorf("simulate: traffic %q: more than %d requests in %g seconds", p.text, maxOffered, length.Seconds())
}

// draws makes independent sources of random numbers from the seed of a run, for one stream.
type draws struct{ seed, stream uint64 }

func (d draws) source(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(d.seed, d.stream|purpose<<32))
}

// What the random numbers of a stream are for. The purposes are independent, so costs do not change the arrivals.
const (
	drawArrivals = iota
	drawClients
	drawCosts
	drawThinning
	drawJitter
)

// offer appends the requests of the stream. It stops soon after maxOffered.
func (s *stream) offer(all []offer, length time.Duration, first uint32, d draws) []offer {
	begin := len(all)
	if s.log != nil {
		all = s.log.offer(all, length, first, d.source(drawThinning))
	} else {
		client := s.clients.pick(d.source(drawClients))
		s.arrivals(d.source(drawArrivals), func(at time.Duration) bool {
			if at >= length || len(all) > maxOffered {
				return false
			}
			all = append(all, offer{int64(at), first + client(), 1})
			return true
		})
	}
	if s.costs != nil {
		random := d.source(drawCosts)
		for i := begin; i < len(all); i++ {
			all[i].cost = s.costs(random)
		}
	}
	return all
}

// population returns the number of clients.
func (s *stream) population() int {
	if s.log != nil {
		return len(s.log.traffic.keys)
	}
	return max(1, s.clients.count)
}
