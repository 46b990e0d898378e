package vectors

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// Scenario is one line of a vector file: operations on fresh keys, in order, with the answer to each. Numbers are
// integers; instants and durations are in nanoseconds. vectors/README.md describes the format.
type Scenario struct {
	ID     string   `json:"id"`
	Tags   []string `json:"tags"`
	Params Params   `json:"params"`
	Limit  *int64   `json:"limit"` // the limit that every answer reports; nil if each answer has its own
	T0     int64    `json:"t0"`
	Ops    []Op     `json:"ops"`
}

// Params are an algorithm and its parameters, or several algorithms that one decision combines.
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
	Unit     string   `json:"unit"`
	Zone     string   `json:"zone"`
	Month    int      `json:"month"`
	Day      int      `json:"day"`
	At       int64    `json:"at"` // seconds
	After    int64    `json:"after"`
	Within   int64    `json:"within"`
	For      int64    `json:"for"`
	UpTo     int64    `json:"up_to"`
	Limits   []Params `json:"limits"`
}

// Op is one operation. T is its time after the scenario's T0.
type Op struct {
	T       int64   `json:"t"`
	Key     string  `json:"key"`
	Cost    int64   `json:"cost"`
	Verb    string  `json:"verb"`     // allow, peek, reserve or limit
	MaxWait int64   `json:"max_wait"` // for a reserve; -1 is no bound
	Params  *Params `json:"params"`   // for a limit: later requests come with it
	Want    Want    `json:"want"`
}

// Want is the expected answer. A nil field is not checked, and Error excludes the other fields. A duration of -1
// means never.
type Want struct {
	Error      string `json:"error"`
	Allowed    *bool  `json:"allowed"`
	Limit      *int64 `json:"limit"`
	Remaining  *int64 `json:"remaining"`
	RetryAfter *int64 `json:"retry_after"`
	ResetAfter *int64 `json:"reset_after"`
	Delay      *int64 `json:"delay"`
}

// The operations.
const (
	Allow   = "allow"
	Peek    = "peek"
	Reserve = "reserve"
	// ChangeLimit gives later requests the limit of Op.Params. Their states stay those of the earlier limit until they
	// are written.
	ChangeLimit = "limit"
)

// Tagged reports whether the scenario has the tag.
func (s Scenario) Tagged(tag string) bool { return slices.Contains(s.Tags, tag) }

// Reserves reports whether the scenario has an operation that reserves for a later instant.
func (s Scenario) Reserves() bool {
	return slices.ContainsFunc(s.Ops, func(op Op) bool { return op.Verb == Reserve && op.MaxWait != 0 })
}

// Changes reports whether the scenario changes its limit.
func (s Scenario) Changes() bool {
	return slices.ContainsFunc(s.Ops, func(op Op) bool { return op.Verb == ChangeLimit })
}

// AllParams returns the parameters of every limit that the scenario has in turn.
func (s Scenario) AllParams() []Params {
	all := []Params{s.Params}
	for _, op := range s.Ops {
		if op.Params != nil {
			all = append(all, *op.Params)
		}
	}
	return all
}

// Limits returns the scenario's limits as package weir declares them, in order. They may lie outside its bounds.
func (s Scenario) Limits() []weir.Limit { return s.Params.Weir() }

// Weir returns the limits of p as package weir declares them, in order.
func (p Params) Weir() []weir.Limit {
	if p.Algo != composite {
		return []weir.Limit{p.limit()}
	}
	var limits []weir.Limit
	for _, part := range p.Limits {
		limits = append(limits, part.limit())
	}
	return limits
}

// composite names the algorithm that combines several limits.
const composite = "composite"

// limits constructs a limit for each algorithm.
var limits = map[string]func(Params) weir.Limit{
	"gcra":         tokenBucket,
	"token_bucket": tokenBucket,
	"leaky_queue": func(p Params) weir.Limit {
		return weir.LeakyBucket{Rate: per(p.Rate, p.Period), Queue: p.Queue, NoDelay: p.NoDelay}
	},
	"fixed_window":    func(p Params) weir.Limit { return weir.FixedWindow{Rate: per(p.Limit, p.Period)} },
	"first_window":    func(p Params) weir.Limit { return weir.FirstWindow{Rate: per(p.Limit, p.Period)} },
	"sliding_counter": func(p Params) weir.Limit { return weir.SlidingWindow{Rate: per(p.Limit, p.Period)} },
	"sliding_log": func(p Params) weir.Limit {
		return weir.SlidingLog{Rate: per(p.Limit, p.Period), Gap: time.Duration(p.MinGap), CountDenied: p.Penalise}
	},
	"strict_gate": func(p Params) weir.Limit { return weir.RateGate{Rate: per(p.Limit, p.Period)} },
	"cycle_semaphore": func(p Params) weir.Limit {
		return weir.Cycle{Rate: per(p.Limit, p.Period), Origin: time.Duration(p.Origin)}
	},
	calendarWindow: quota,
	"ban": func(p Params) weir.Limit {
		return weir.Ban{After: p.After, Within: time.Duration(p.Within), For: time.Duration(p.For), UpTo: time.Duration(p.UpTo)}
	},
}

// calendarWindow is the algorithm whose windows have no period.
const calendarWindow = "calendar_window"

// quota returns a limit with the unit 0 if there is no such unit.
func quota(p Params) weir.Limit {
	l := weir.Quota{Count: p.Limit, Zone: p.Zone, Month: time.Month(p.Month), Day: p.Day, At: time.Duration(p.At) * time.Second}
	for u := weir.Day; u <= weir.Year; u++ {
		if u.String() == p.Unit {
			l.Unit = u
		}
	}
	return l
}

// OfCalendar reports whether the scenario has windows of the calendar. Its times cannot be read in another unit.
func (s Scenario) OfCalendar() bool { return slices.Contains(s.Params.algorithms(), calendarWindow) }

// dialects are formats with their own fields and answers. They do not apply to engines; the value names the limiter
// that each applies to.
var dialects = map[string]string{
	"nginx_limit_req": "the nginx dialect",
	guava:             "Bursty and WarmUp",
}

// guava is the algorithm of lines that name a kind instead.
const guava = "guava"

func tokenBucket(p Params) weir.Limit {
	return weir.TokenBucket{Rate: per(p.Rate, p.Period), Burst: p.Burst}
}

func per(count, period int64) weir.Rate { return weir.Per(count, time.Duration(period)) }

// limit returns the limit of an algorithm that loading has checked.
func (p Params) limit() weir.Limit { return limits[p.Algo](p) }

// algorithms returns the names of the algorithms that p needs.
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

// outOfBounds returns the parameter that lies outside the documented bounds of package weir, or "".
func (p Params) outOfBounds() string {
	count := max(p.Rate, p.Limit)
	switch {
	case count > weir.MaxCount:
		return fmt.Sprintf("count %d is above 2^53", count)
	case p.Period > int64(weir.MaxPeriod):
		return fmt.Sprintf("period %d ns is above 366 days", p.Period)
	case count > p.Period && p.Algo != calendarWindow:
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
