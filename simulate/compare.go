package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/accesslog"
	"github.com/weirflow/weir/internal/replay"
	"github.com/weirflow/weir/internal/tape"
)

// Comparison shows what limits do to the same made-up traffic. `weir simulate --traffic` prints it as JSON.
type Comparison struct {
	Traffic  string             `json:"traffic"`
	Logs     []LogReport        `json:"logs,omitempty"` // how each log of the traffic was read
	Seconds  float64            `json:"seconds"`
	Clients  int                `json:"clients"`
	Requests int64              `json:"requests"`
	Units    int64              `json:"units"`           // their costs together
	Most     [3]int64           `json:"most"`            // units within any of ComparisonWindows
	Jain     float64            `json:"jain"`            // fairness of the units that each client asks for
	Moved    int                `json:"moved,omitempty"` // clients that change their daemon when one is lost, and again when it returns
	Limits   []ComparisonReport `json:"limits"`
}

type (
	// LogReport says how a log was read.
	LogReport = accesslog.Found
	// Reason is a reason to leave lines of a log out, and their number.
	Reason = accesslog.Reason
	// Series is what happened over time, in steps of equal length: of its field Every, with a count for each step in Offered,
	// Admitted, Refused and Queued.
	Series = tape.Series
)

// ComparisonReport is the result of one limit. A request is refused if it is never admitted; a client that
// retries makes several attempts for one request.
type ComparisonReport struct {
	Limit    string   `json:"limit"`
	Admitted int64    `json:"admitted"` // requests
	Refused  int64    `json:"refused"`  // requests
	Attempts int64    `json:"attempts"`
	Units    int64    `json:"units"`          // admitted
	Over     int64    `json:"over,omitempty"` // units beyond those that would have been admitted if no daemon had been lost
	Most     [3]int64 `json:"most"`           // units that go ahead within any of ComparisonWindows

	// The limit's own window, in seconds, the most units within any such time, and that as a multiple of the limit's
	// count: what a boundary lets through. The units are those of one client if each has its own limit. All are 0 for
	// a limit without a rate.
	Window   float64 `json:"window"`
	InWindow int64   `json:"most_in_window"`
	Boundary float64 `json:"times_count"`

	WaitP50    float64 `json:"wait_p50"` // seconds from the first attempt of an admitted request until it goes ahead
	WaitP99    float64 `json:"wait_p99"`
	LatencyP50 float64 `json:"latency_p50,omitempty"` // seconds from the first attempt to the end of the service
	LatencyP99 float64 `json:"latency_p99,omitempty"`
	Queue      int64   `json:"longest_queue"` // the most requests that wait at once, at the end of any step of Series

	// Starved is the longest run of refusals in seconds, from its first to the next admission or the end: for one client if
	// each has its own limit, otherwise for all.
	Starved float64 `json:"starved"`
	ShutOut int     `json:"shut_out"` // clients without an admitted request
	Jain    float64 `json:"jain"`     // fairness: of the units that each client gets

	Series Series `json:"-"` // what happened over time
}

// ComparisonWindows are the lengths of time over which a comparison finds the most units.
func ComparisonWindows() [3]time.Duration {
	return [3]time.Duration{time.Second, 10 * time.Second, time.Minute}
}

// Compare tries each limit alone on the traffic. A limit is its text, or several joined by "and", which decide together.
// A faulty text returns the error of [weir.ParseLimits] or of [weir.NewRule].
func (p Pattern) Compare(limits []string, s Scenario) (Comparison, error) {
	if err := s.check(); err != nil {
		return Comparison{}, err
	}
	if s.Length == 0 {
		s.Length = min(p.length(), weir.MaxPeriod)
	}
	candidates := make([]replay.Candidate, len(limits))
	for i, text := range limits {
		var err error
		if candidates[i], err = replay.ParseCandidate(text); err != nil {
			return Comparison{}, fmt.Errorf("simulate: compare %q: %w", text, err)
		}
	}
	offers, clients, err := p.offers(s.Length, s.Seed)
	if err != nil {
		return Comparison{}, err
	}
	c := Comparison{Traffic: p.text, Logs: p.readings(), Seconds: s.Length.Seconds(), Clients: clients, Requests: int64(len(offers)), Limits: []ComparisonReport{}}
	asked := c.offered(offers)
	c.Moved = s.moved(clients)
	steady := s
	steady.Lose, steady.Return, steady.Attempts = 0, 0, nil
	scenarios := []*Scenario{&s}
	if c.Moved > 0 {
		scenarios = append(scenarios, &steady)
	}
	progress := tape.Progress{Tell: s.Progress, Of: int64(len(offers)) * int64(len(candidates)*len(scenarios))}
	for i, candidate := range candidates {
		var reports []ComparisonReport
		for _, scenario := range scenarios {
			r, err := newRun(p, candidate, scenario, clients, len(offers))
			if err == nil {
				r.limit = i
				err = r.all(offers, &progress)
			}
			if err != nil {
				return Comparison{}, fmt.Errorf("simulate: compare %q: %w", candidate.Text, err)
			}
			reports = append(reports, r.report(candidate, int64(len(offers)), asked))
		}
		if c.Moved > 0 {
			reports[0].Over = reports[0].Units - reports[1].Units
		}
		c.Limits = append(c.Limits, reports[0])
	}
	return c, nil
}

// offered describes the traffic itself. It returns the units that each client asks for.
func (c *Comparison) offered(offers []offer) (units []int64) {
	units = make([]int64, c.Clients)
	starts := make([]admission, len(offers))
	for i, o := range offers {
		units[o.client] += int64(o.cost)
		c.Units += int64(o.cost)
		starts[i] = admission{at: o.at, cost: o.cost}
	}
	c.Most, c.Jain = mostOf(starts), jain(units)
	return units
}

// report ends the run.
func (r *run) report(c replay.Candidate, requests int64, asked []int64) ComparisonReport {
	l := &r.ledger
	l.sort()
	l.droughts.endAll(max(r.now-r.start, int64(r.scenario.Length)))
	admitted := int64(len(l.starts))
	report := ComparisonReport{
		Limit: c.Text, Admitted: admitted, Refused: requests - admitted, Attempts: r.attempts, Units: l.units, Most: mostOf(l.starts),
		Starved: time.Duration(l.droughts.longest).Seconds(), Jain: jain(l.admitted),
	}
	waits := make([]time.Duration, len(l.starts))
	for i, s := range l.starts {
		waits[i] = time.Duration(s.waited)
	}
	slices.Sort(waits)
	report.WaitP50, report.WaitP99 = quantile(waits, 50), quantile(waits, 99)
	if rate := c.Rate(); rate.Period > 0 {
		most := mostUnits
		if r.scenario.PerClient {
			most = mostOfAClient
		}
		report.Window, report.InWindow = rate.Period.Seconds(), most(rate.Period, l.starts)
		report.Boundary = float64(report.InWindow) / float64(rate.Count)
	}
	if r.scenario.Server.Period > 0 {
		latencies := serve(r.scenario.Server, l.starts, &l.series)
		report.LatencyP50, report.LatencyP99 = quantile(latencies, 50), quantile(latencies, 99)
	}
	for client, units := range l.admitted {
		if units == 0 && asked[client] > 0 {
			report.ShutOut++
		}
	}
	l.series.Sum()
	report.Series, report.Queue = l.series, slices.Max(l.series.Queued)
	return report
}

func mostOf(starts []admission) (most [3]int64) {
	for i, window := range ComparisonWindows() {
		most[i] = mostUnits(window, starts)
	}
	return most
}

// quantile returns the smallest value that is not below the given percentage of the sorted values, in seconds.
func quantile(sorted []time.Duration, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1].Seconds()
}
