package limittest

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// Scenario is one line of a vector file: operations on fresh keys, in order,
// and the answer to each. Numbers are whole; instants and durations are in
// nanoseconds. vectors/README.md describes the format.
type Scenario struct {
	ID     string   `json:"id"`
	Tags   []string `json:"tags"`
	Params Params   `json:"params"`
	Limit  *int64   `json:"limit"` // what every answer reports; nil if each says its own
	T0     int64    `json:"t0"`
	Ops    []Op     `json:"ops"`
}

// Params are an algorithm and its parameters, or several to be held at once.
type Params struct {
	Algo     string   `json:"algo"`
	Rate     int64    `json:"rate"`
	Period   int64    `json:"period"`
	Burst    int64    `json:"burst"`
	Queue    int64    `json:"queue"`
	NoDelay  int64    `json:"no_delay"`
	Limit    int64    `json:"limit"`
	Penalise bool     `json:"penalise"`
	MinGap   int64    `json:"min_gap"`
	Origin   int64    `json:"origin"`
	Limits   []Params `json:"limits"`
}

// Op is one operation, at T after the scenario's T0.
type Op struct {
	T       int64  `json:"t"`
	Key     string `json:"key"`
	Cost    int64  `json:"cost"`
	Verb    string `json:"verb"`     // allow, peek or reserve
	MaxWait int64  `json:"max_wait"` // of a reserve; -1 is no bound
	Want    Want   `json:"want"`
}

// Want is the expected answer. A field that is nil is not expected, and Error
// stands alone. A duration of -1 is never.
type Want struct {
	Error      string `json:"error"`
	Allowed    *bool  `json:"allowed"`
	Limit      *int64 `json:"limit"`
	Remaining  *int64 `json:"remaining"`
	RetryAfter *int64 `json:"retry_after"`
	ResetAfter *int64 `json:"reset_after"`
	Delay      *int64 `json:"delay"`
}

// The verbs.
const (
	Allow   = "allow"
	Peek    = "peek"
	Reserve = "reserve"
)

// Tagged says whether the scenario has the tag.
func (s Scenario) Tagged(tag string) bool { return slices.Contains(s.Tags, tag) }

// Reserves says whether an operation reserves for a later instant.
func (s Scenario) Reserves() bool {
	return slices.ContainsFunc(s.Ops, func(op Op) bool { return op.Verb == Reserve && op.MaxWait != 0 })
}

// Limits are the scenario's limits as package weir has them, in order. They
// may lie outside its bounds.
func (s Scenario) Limits() []weir.Limit {
	if s.Params.Algo != composite {
		return []weir.Limit{s.Params.limit()}
	}
	var limits []weir.Limit
	for _, part := range s.Params.Limits {
		limits = append(limits, part.limit())
	}
	return limits
}

// composite is the algorithm of several limits at once.
const composite = "composite"

// limits makes a limit of each algorithm.
var limits = map[string]func(Params) weir.Limit{
	"gcra":         tokenBucket,
	"token_bucket": tokenBucket,
	"leaky_queue": func(p Params) weir.Limit {
		return weir.LeakyBucket{Rate: per(p.Rate, p.Period), Queue: p.Queue, NoDelay: p.NoDelay}
	},
	"fixed_window":    func(p Params) weir.Limit { return weir.FixedWindow{Rate: per(p.Limit, p.Period)} },
	"sliding_counter": func(p Params) weir.Limit { return weir.SlidingWindow{Rate: per(p.Limit, p.Period)} },
	"sliding_log": func(p Params) weir.Limit {
		return weir.SlidingLog{Rate: per(p.Limit, p.Period), Gap: time.Duration(p.MinGap), CountDenied: p.Penalise}
	},
	"strict_gate": func(p Params) weir.Limit { return weir.RateGate{Rate: per(p.Limit, p.Period)} },
	"cycle_semaphore": func(p Params) weir.Limit {
		return weir.Cycle{Rate: per(p.Limit, p.Period), Origin: time.Duration(p.Origin)}
	},
}

// dialects have lines of their own shape and answers of their own fields. They
// are no limits of an engine, and bind what speaks them.
var dialects = map[string]string{
	"nginx_limit_req": "the nginx dialect",
	guava:             "Bursty and WarmUp",
}

// guava is the algorithm of the lines that name a kind instead of one.
const guava = "guava"

func tokenBucket(p Params) weir.Limit {
	return weir.TokenBucket{Rate: per(p.Rate, p.Period), Burst: p.Burst}
}

func per(count, period int64) weir.Rate { return weir.Per(count, time.Duration(period)) }

// limit is of a known algorithm: loading has checked it.
func (p Params) limit() weir.Limit { return limits[p.Algo](p) }

// algorithms are the names of the algorithms that p needs.
func (p Params) algorithms() []string {
	if p.Algo != composite {
		return []string{p.Algo}
	}
	var names []string
	for _, part := range p.Limits {
		names = append(names, part.algorithms()...)
	}
	return names
}

// outOfBounds says which parameter package weir may refuse, in terms of its
// documented bounds; "" if none.
func (p Params) outOfBounds() string {
	count := max(p.Rate, p.Limit)
	switch {
	case count > weir.MaxCount:
		return fmt.Sprintf("count %d is above 2^53", count)
	case p.Period > int64(weir.MaxPeriod):
		return fmt.Sprintf("period %d ns is above 366 days", p.Period)
	case count > p.Period:
		return fmt.Sprintf("%d in %d ns is above 1e9/s", count, p.Period)
	case p.Burst > weir.MaxCount:
		return fmt.Sprintf("burst %d is above 2^53", p.Burst)
	case max(p.Queue, p.NoDelay) >= weir.MaxCount:
		return fmt.Sprintf("queue %d is above 2^53 - 1", max(p.Queue, p.NoDelay))
	}
	for _, part := range p.Limits {
		if reason := part.outOfBounds(); reason != "" {
			return reason
		}
	}
	return ""
}
