package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// Comparison shows what candidates do to the same made-up traffic of one key. `weir simulate --traffic` prints it as
// JSON.
type Comparison struct {
	Traffic  string             `json:"traffic"`
	Seconds  float64            `json:"seconds"`
	Requests int64              `json:"requests"`
	Most     [3]int64           `json:"most"` // requests within any of ComparisonWindows
	Limits   []ComparisonReport `json:"limits"`
}

// ComparisonReport is the result of one candidate.
type ComparisonReport struct {
	Limit    string   `json:"limit"`
	Admitted int64    `json:"admitted"`
	Refused  int64    `json:"refused"`
	Most     [3]int64 `json:"most"`      // requests that go ahead within any of ComparisonWindows
	DelayP50 float64  `json:"delay_p50"` // seconds that admitted requests are held
	DelayP99 float64  `json:"delay_p99"`
	Starved  float64  `json:"starved"` // seconds of the longest run of refusals, from its first to the next admission or the end
}

// ComparisonWindows are the lengths of time for which a comparison counts the most requests.
func ComparisonWindows() [3]time.Duration {
	return [3]time.Duration{time.Second, 10 * time.Second, time.Minute}
}

// Compare tries each candidate alone on the traffic. Every request is one Take of cost 1 of the same key. A refused
// request does not come back.
func (p Pattern) Compare(candidates []Candidate, length time.Duration, seed uint64) (Comparison, error) {
	instants, err := p.Instants(length, seed)
	if err != nil {
		return Comparison{}, err
	}
	c := Comparison{Traffic: p.text, Seconds: length.Seconds(), Requests: int64(len(instants)), Most: mostOf(instants), Limits: []ComparisonReport{}}
	for _, candidate := range candidates {
		r, err := candidate.compare(instants, length)
		if err != nil {
			return Comparison{}, fmt.Errorf("simulate: compare %q: %w", candidate.Text, err)
		}
		c.Limits = append(c.Limits, r)
	}
	return c, nil
}

func (c Candidate) compare(instants []time.Duration, length time.Duration) (r ComparisonReport, err error) {
	now := virtualStart
	begin, err := c.decider(&now)
	if err != nil {
		return r, err
	}
	take, err := begin("")
	if err != nil {
		return r, err
	}
	run := refusals{since: -1}
	var starts, delays []time.Duration
	for _, at := range instants {
		now = virtualStart + int64(at)
		d, err := take()
		if err != nil {
			return r, err
		}
		run.see(at, d)
		if d.Allowed {
			starts, delays = append(starts, at+d.Delay), append(delays, d.Delay)
		}
	}
	run.end(length)
	slices.Sort(starts)
	slices.Sort(delays)
	admitted := int64(len(starts))
	return ComparisonReport{
		Limit: c.Text, Admitted: admitted, Refused: int64(len(instants)) - admitted, Most: mostOf(starts),
		DelayP50: quantile(delays, 50), DelayP99: quantile(delays, 99), Starved: run.longest.Seconds(),
	}, nil
}

// refusals measures the longest run of refusals.
type refusals struct {
	since   time.Duration // the first refusal of the current run; negative without one
	longest time.Duration
}

func (r *refusals) see(at time.Duration, d weir.Decision) {
	switch {
	case d.Allowed:
		r.end(at)
	case r.since < 0:
		r.since = at
	}
}

func (r *refusals) end(at time.Duration) {
	if r.since >= 0 {
		r.longest = max(r.longest, at-r.since)
	}
	r.since = -1
}

func mostOf(instants []time.Duration) (most [3]int64) {
	for i, window := range ComparisonWindows() {
		most[i] = mostWithin(window, instants)
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
