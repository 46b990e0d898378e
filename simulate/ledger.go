package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// ledger is what happened to the requests of a run. All its times are after the start.
type ledger struct {
	begin    int64
	starts   []admission // of admitted requests, in order of admission
	units    int64
	series   Series
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
		starts: make([]admission, 0, min(offers, 1<<16)), series: newSeries(uint64(s.Length)),
		admitted: make([]int64, clients), droughts: newDroughts(subjects),
	}
}

func (l *ledger) offer(c caller) { l.series.offer(uint64(c.asked-l.begin), int64(c.cost)) }

func (l *ledger) admit(c caller, now, delay int64) {
	l.droughts.end(c.client, now-l.begin)
	at := later(now-l.begin, delay)
	if asked := c.asked - l.begin; at > asked {
		l.wait(asked, at)
	}
	l.series.admit(uint64(at), int64(c.cost))
	l.starts = append(l.starts, admission{at, at - (c.first - l.begin), c.client, c.cost})
	l.units += int64(c.cost)
	l.admitted[c.client] += int64(c.cost)
}

func (l *ledger) refuse(c caller, now int64) {
	if now > c.asked { // it waited in line
		l.wait(c.asked-l.begin, now-l.begin)
	}
	l.series.refuse(uint64(c.asked-l.begin), int64(c.cost))
	l.droughts.begin(c.client, c.asked-l.begin)
}

// wait records a request that waits for a time.
func (l *ledger) wait(from, to int64) {
	l.series.queue(uint64(from), 1)
	l.series.queue(uint64(to), -1)
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
func serve(r weir.Rate, starts []admission, series *Series) []time.Duration {
	latencies := make([]time.Duration, len(starts))
	free := int64(0)
	for i, s := range starts {
		begin := max(free, s.at)
		if begin > s.at {
			series.queue(uint64(s.at), 1)
			series.queue(uint64(begin), -1)
		}
		free = later(begin, service(r, s.cost))
		latencies[i] = time.Duration(later(free-s.at, s.waited))
	}
	slices.Sort(latencies)
	return latencies
}

// service returns how long a request of this cost takes: cost / rate, rounded up.
func service(r weir.Rate, cost uint32) int64 {
	took := int64(instantOf(r, int64(cost)))
	if uint64(took)*uint64(r.Count) != uint64(cost)*uint64(r.Period) {
		took = later(took, 1)
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

// Series is what happened over time, in steps of equal length. It is what a plot shows.
type Series struct {
	Every    time.Duration
	Offered  []int64 // units asked for within a step, with those of requests that came back
	Admitted []int64 // units that went ahead within a step
	Refused  []int64 // units refused within a step, with those of requests that come back
	Queued   []int64 // requests waiting at the end of a step: for the limit, for a delay, or for the server
}

// seriesSteps bounds the steps of a series.
const seriesSteps = 240

func newSeries(length uint64) Series { return seriesOf(length, stepOf(length)) }

// seriesOf takes the length in nanoseconds, above 0.
func seriesOf(length uint64, every time.Duration) Series {
	s := Series{Every: every}
	n := int((length-1)/uint64(every)) + 1
	s.Offered, s.Admitted, s.Refused, s.Queued = make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	return s
}

// stepOf returns a step of 1, 2 or 5 times a power of ten, or of a round number of minutes, hours or days.
func stepOf(length uint64) time.Duration {
	for unit := time.Duration(1); unit < time.Second; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if length <= uint64(n*unit*seriesSteps) {
				return n * unit
			}
		}
	}
	for _, step := range []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	} {
		if length <= uint64(step*seriesSteps) {
			return step
		}
	}
	const day = 24 * time.Hour
	return (time.Duration(length/seriesSteps) + day) / day * day
}

func (s *Series) offer(at uint64, units int64) { s.add(s.Offered, at, units) }

func (s *Series) admit(at uint64, units int64) { s.add(s.Admitted, at, units) }

func (s *Series) refuse(at uint64, units int64) { s.add(s.Refused, at, units) }

// queue changes the number of waiting requests. The steps hold changes until sum.
func (s *Series) queue(at uint64, requests int64) { s.add(s.Queued, at, requests) }

func (s *Series) sum() {
	for i := 1; i < len(s.Queued); i++ {
		s.Queued[i] += s.Queued[i-1]
	}
}

// add ignores what happens after the last step.
func (s *Series) add(steps []int64, at uint64, n int64) {
	if step := at / uint64(s.Every); step < uint64(len(steps)) {
		steps[step] += n
	}
}
