// Package simulate tries limits in virtual time, on made-up requests and on access logs. It makes its decisions with
// package weir.
//
// A [Pattern] is traffic of many clients, on which [Pattern.Compare] tries limits in a [Scenario]:
//
//	traffic, err := simulate.ParsePattern("burst 200/s for 1s every 10s from 50 clients")
//	c, err := traffic.Compare([]string{"token bucket 10/s burst 20"}, simulate.Scenario{Length: time.Minute})
//
// Traffic such as "log access.log" comes from a log, which [Pattern.ReadLog] reads; with PerClient each client of the log has a
// limit of its own. A [Driver] offers requests at steady rates to one [Subject] or more, which may be your own limiters.
// Equal runs give equal reports.
//
// The types are not safe for concurrent use.
package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/replay"
	"github.com/weirflow/weir/internal/tape"
)

// Pattern is made-up traffic: the instants of requests, the clients that send them, and their costs.
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
		if s.log != nil && s.log.traffic.Events() == 0 {
			return nil, 0, fmt.Errorf("simulate: traffic %q: no line of the log %s counts", p.text, s.log.name)
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

// The purposes of the random numbers of a stream. They are independent, so costs do not change the arrivals.
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
		return s.log.traffic.Keys()
	}
	return max(1, s.clients.count)
}

// logStream offers the events of an access log.
type logStream struct {
	name    string
	share   float64 // share of the requests that remain
	speed   float64 // how many times faster than recorded
	traffic *replay.Traffic
}

// Logs returns the names of the logs in the text, which ReadLog must read before Compare.
func (p Pattern) Logs() (names []string) {
	for _, s := range p.streams {
		if s.log != nil && !slices.Contains(names, s.log.name) {
			names = append(names, s.log.name)
		}
	}
	return names
}

// ReadLog reads the named log of the pattern, which Compare needs. Each value of key is a client: a field of the log, such as "ip",
// or several with commas between them. ReadLog returns the number of lines that count, and why others do not, the most frequent
// reason first. It refuses a name that the pattern does not have.
func (p Pattern) ReadLog(name, key string, r io.Reader) (counted int, left []Reason, err error) {
	if !slices.Contains(p.Logs(), name) {
		return 0, nil, fmt.Errorf("simulate: traffic %q: it has no log %s", p.text, name)
	}
	fields, err := replay.ParseKey(key)
	if err != nil {
		return 0, nil, fmt.Errorf("simulate: traffic %q: %w", p.text, err)
	}
	traffic := replay.NewTraffic(nil, fields)
	if err := traffic.ReadLog(calledLog(name), r); err != nil {
		return 0, nil, fmt.Errorf("simulate: %w", err)
	}
	for i := range p.streams {
		if log := p.streams[i].log; log != nil && log.name == name {
			log.traffic = traffic
		}
	}
	return traffic.Events(), traffic.Reasons(), nil
}

// calledLog returns the name of a log in texts for people.
func calledLog(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// readings says how each log was read.
func (p Pattern) readings() (all []LogReport) {
	for i, s := range p.streams {
		if s.log != nil && !slices.ContainsFunc(p.streams[:i], func(other stream) bool { return other.log != nil && other.log.name == s.log.name }) {
			all = append(all, s.log.traffic.Logs()...)
		}
	}
	return all
}

// length returns the time that the longest log of the pattern takes, or 0 without a log.
func (p Pattern) length() (longest time.Duration) {
	for _, s := range p.streams {
		if s.log != nil && s.log.traffic != nil {
			longest = max(longest, time.Duration(tape.Later(int64(s.log.after(s.log.traffic.Last())), 1)))
		}
	}
	return longest
}

// begin returns when the traffic begins. A log alone, at its own speed, begins when it began, so that windows lie as
// they do on the clock.
func (p Pattern) begin() int64 {
	if len(p.streams) != 1 || p.streams[0].log == nil || p.streams[0].log.speed != 1 {
		return tape.Start
	}
	return p.streams[0].log.traffic.First()
}

// after returns when an event comes, after the start of the log. It is exact at the log's own speed.
func (l *logStream) after(t int64) time.Duration {
	after := tape.Since(l.traffic.First(), t)
	if l.speed == 1 {
		return time.Duration(min(after, math.MaxInt64))
	}
	return tape.Nanoseconds(float64(after) / l.speed)
}

// offer appends the events that remain: request i comes at (tᵢ - t₀) / speed, and each remains with the probability
// share.
func (l *logStream) offer(all []offer, length time.Duration, client uint32, random *rand.Rand) []offer {
	begin := len(all)
	for e := range l.traffic.All() {
		if at := l.after(e.At); at < length && len(all) <= maxOffered {
			all = append(all, offer{int64(at), client + e.Key, e.Cost})
		}
	}
	log := all[begin:]
	slices.SortStableFunc(log, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.client, b.client), cmp.Compare(a.cost, b.cost))
	})
	if l.share >= 1 {
		return all
	}
	kept := slices.DeleteFunc(log, func(offer) bool { return random.Float64() >= l.share })
	return all[:begin+len(kept)]
}

// clients are the senders of a stream. The zero value is one client.
type clients struct {
	count int
	// skew makes shares uneven: client k of n, from 1, sends each request with a probability in proportion to 1/k^skew.
	skew float64
	// inTurn makes client k send request k, k+n, … instead of drawing the client.
	inTurn bool
}

const (
	maxClients = 1_000_000
	maxSkew    = 10
)

// pick returns a function that returns the client of the next request, from 0.
func (c clients) pick(random *rand.Rand) func() uint32 {
	switch {
	case c.count <= 1:
		return func() uint32 { return 0 }
	case c.inTurn && c.skew == 0:
		next := -1
		return func() uint32 {
			next = (next + 1) % c.count
			return uint32(next)
		}
	case c.skew == 0:
		return func() uint32 { return uint32(random.IntN(c.count)) }
	}
	sums := make([]float64, c.count)
	sum := 0.0
	for k := range sums {
		sum += math.Pow(float64(k+1), -c.skew)
		sums[k] = sum
	}
	return func() uint32 {
		k, _ := slices.BinarySearch(sums, random.Float64()*sum)
		return uint32(min(k, c.count-1))
	}
}

// costs draws the cost of the next request. Without costs, each is 1.
type costs func(random *rand.Rand) uint32

// fixedCost is the same for all requests.
func fixedCost(n int64) costs {
	return func(*rand.Rand) uint32 { return uint32(n) }
}

// evenCost takes every whole number from low to high with the same probability.
func evenCost(low, high int64) costs {
	return func(random *rand.Rand) uint32 { return uint32(low + random.Int64N(high-low+1)) }
}

// geometricCost has the given mean m: n costs at least 1, and is n with probability (1-p)^(n-1) p, where p = 1/m.
func geometricCost(mean int64) costs {
	if mean == 1 {
		return fixedCost(1)
	}
	scale := -1 / math.Log1p(-1/float64(mean))
	return func(random *rand.Rand) uint32 {
		return uint32(min(replay.MaxCost, 1+math.Floor(random.ExpFloat64()*scale)))
	}
}

// rareCost is usual, and with the given probability rare.
func rareCost(usual, rare int64, share float64) costs {
	return func(random *rand.Rand) uint32 {
		if random.Float64() < share {
			return uint32(rare)
		}
		return uint32(usual)
	}
}

// retry is what the clients of a stream do after a refusal. The zero value does not come back.
type retry struct {
	on     bool
	every  time.Duration // 0: obeys Retry-After
	jitter time.Duration // adds a time that is uniform in 0 to jitter
	most   int64         // retries of one request; 0: without a bound
}

// after returns how long the client waits before it comes back. ok is false if it does not.
func (r *retry) after(d weir.Decision, retries uint32, random *rand.Rand) (wait time.Duration, ok bool) {
	if !r.on || r.most > 0 && int64(retries) >= r.most {
		return 0, false
	}
	wait = r.every
	if wait == 0 {
		if d.RetryAfter == weir.Never || d.RetryAfter > weir.MaxPeriod {
			return 0, false
		}
		wait = max(time.Second, (d.RetryAfter+time.Second-1)/time.Second*time.Second)
	}
	if r.jitter > 0 {
		wait += time.Duration(random.Int64N(int64(r.jitter)))
	}
	return wait, true
}
