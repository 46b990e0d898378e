package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
)

// ledger records the requests of a run. All its times are after the start.
type ledger struct {
	begin    int64
	starts   []admission // of admitted requests, in order of admission
	units    int64
	series   tape.Series
	admitted []int64 // units, by client
	droughts droughts
}

// caller is a request on its way.
type caller struct {
	first   int64 // when it first asked
	asked   int64 // when this attempt began
	client  uint32
	cost    uint32
	retries uint32
}

// admission is an admitted request.
type admission struct {
	at     int64 // when it goes ahead
	waited int64 // since it first asked
	client uint32
	cost   uint32
}

func newLedger(s *Scenario, begin int64, clients, offers int) ledger {
	subjects := 1
	if s.PerClient {
		subjects = clients
	}
	return ledger{
		begin:  begin,
		starts: make([]admission, 0, min(offers, 1<<16)), series: tape.NewSeries(uint64(s.Length)),
		admitted: make([]int64, clients), droughts: newDroughts(subjects),
	}
}

func (l *ledger) offer(c caller) { l.series.Offer(uint64(c.asked-l.begin), int64(c.cost)) }

func (l *ledger) admit(c caller, now, delay int64) {
	l.droughts.end(c.client, now-l.begin)
	at := tape.Later(now-l.begin, delay)
	if asked := c.asked - l.begin; at > asked {
		l.wait(asked, at)
	}
	l.series.Admit(uint64(at), int64(c.cost))
	l.starts = append(l.starts, admission{at, at - (c.first - l.begin), c.client, c.cost})
	l.units += int64(c.cost)
	l.admitted[c.client] += int64(c.cost)
}

func (l *ledger) refuse(c caller, now int64) {
	if now > c.asked { // it waited in line
		l.wait(c.asked-l.begin, now-l.begin)
	}
	l.series.Refuse(uint64(c.asked-l.begin), int64(c.cost))
	l.droughts.begin(c.client, c.asked-l.begin)
}

// wait records a request that waits for a time.
func (l *ledger) wait(from, to int64) {
	l.series.Queue(uint64(from), 1)
	l.series.Queue(uint64(to), -1)
}

// sort orders the starts by time.
func (l *ledger) sort() {
	if !slices.IsSortedFunc(l.starts, byStart) {
		slices.SortStableFunc(l.starts, byStart)
	}
}

func byStart(a, b admission) int { return cmp.Compare(a.at, b.at) }

// mostUnits returns the largest number of units that start in any half-open stretch of the length.
func mostUnits(length time.Duration, starts []admission) (most int64) {
	first, sum := 0, int64(0)
	for _, s := range starts {
		for s.at-starts[first].at >= int64(length) {
			sum -= int64(starts[first].cost)
			first++
		}
		sum += int64(s.cost)
		most = max(most, sum)
	}
	return most
}

// mostOfAClient returns the largest number of units of one client that start in any half-open stretch of the length.
func mostOfAClient(length time.Duration, starts []admission) (most int64) {
	byClient := slices.Clone(starts)
	slices.SortStableFunc(byClient, func(a, b admission) int { return cmp.Compare(a.client, b.client) })
	for from := 0; from < len(byClient); {
		to := from + 1
		for to < len(byClient) && byClient[to].client == byClient[from].client {
			to++
		}
		most = max(most, mostUnits(length, byClient[from:to]))
		from = to
	}
	return most
}

// droughts measure runs of refusals: of all clients together, or of each.
type droughts struct {
	since   []int64 // the first refusal of the current run; negative without one
	longest int64
}

func newDroughts(subjects int) droughts {
	return droughts{since: slices.Repeat([]int64{-1}, subjects)}
}

func (d *droughts) of(client uint32) *int64 {
	if len(d.since) == 1 {
		return &d.since[0]
	}
	return &d.since[client]
}

func (d *droughts) begin(client uint32, now int64) {
	if since := d.of(client); *since < 0 {
		*since = now
	}
}

func (d *droughts) end(client uint32, now int64) {
	if since := d.of(client); *since >= 0 {
		d.longest = max(d.longest, now-*since)
		*since = -1
	}
}

// endAll ends the run of every client, at the end of the traffic.
func (d *droughts) endAll(now int64) {
	for i := range d.since {
		d.end(uint32(i), now)
	}
}

// serve passes the starts, in order, through one server, and returns the latency of each request, sorted: from its
// first attempt to the end of its service. Requests queue for the server without a bound.
func serve(r weir.Rate, starts []admission, series *tape.Series) []time.Duration {
	latencies := make([]time.Duration, len(starts))
	free := int64(0)
	for i, s := range starts {
		begin := max(free, s.at)
		if begin > s.at {
			series.Queue(uint64(s.at), 1)
			series.Queue(uint64(begin), -1)
		}
		free = tape.Later(begin, service(r, s.cost))
		latencies[i] = time.Duration(tape.Later(free-s.at, s.waited))
	}
	slices.Sort(latencies)
	return latencies
}

// service returns how long a request of this cost takes: cost / rate, rounded up.
func service(r weir.Rate, cost uint32) int64 {
	took := int64(tape.InstantOf(r, int64(cost)))
	if uint64(took)*uint64(r.Count) != uint64(cost)*uint64(r.Period) {
		took = tape.Later(took, 1)
	}
	return min(took, int64(weir.MaxPeriod))
}

// jain returns Jain's index of fairness: (Σx)² / (n Σx²). It is 1 if all are equal, and 1/n if one has everything. It
// is 0 if none has anything.
func jain(amounts []int64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range amounts {
		sum += float64(x)
		squares += float64(float64(x) * float64(x))
	}
	if squares == 0 {
		return 0
	}
	return float64(sum*sum) / float64(float64(len(amounts))*squares)
}
