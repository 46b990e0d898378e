package live

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/metrics"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/cmd/weir/internal/top"
)

// Time is seconds since 1970.
type Time float64

func timeOf(t time.Time) Time { return Time(math.Round(float64(t.UnixMilli())) / 1000) }

// TimeOf returns a time as messages have it.
func TimeOf(t time.Time) Time { return timeOf(t) }

// Message is one event of the stream. Unchanged fields are left out.
type Message struct {
	At        Time                `json:"at"`
	All       bool                `json:"all,omitempty"` // nothing is left out: forget what went before
	Now       Now                 `json:"now"`
	History   *History            `json:"history,omitempty"`
	Sample    *Point              `json:"sample,omitempty"` // one more point of the history
	Rules     []RuleLine          `json:"rules,omitempty"`
	Busiest   []top.Count         `json:"busiest,omitempty"` // the fields from here on need the scope admin
	Refused   []top.Count         `json:"refused,omitempty"`
	Banned    []metrics.BannedKey `json:"banned,omitempty"`
	Fullest   []top.Full          `json:"fullest,omitempty"`
	Overrides []override.Entry    `json:"overrides,omitempty"`
	Audit     []Change            `json:"audit,omitempty"`
}

// Now is the state of the daemon.
type Now struct {
	Version      string        `json:"version"`
	Revision     string        `json:"revision"`
	Started      Time          `json:"started"`
	Ctl          string        `json:"ctl"` // what weir ctl needs to reach this daemon
	Engine       Engine        `json:"engine"`
	Unready      string        `json:"unready"`
	Daemons      *Daemons      `json:"daemons,omitempty"`
	Latency      *Latency      `json:"latency,omitempty"`
	Reload       *Reload       `json:"reload,omitempty"`
	Pushed       *Pushed       `json:"pushed,omitempty"`
	Certificates []Certificate `json:"certificates,omitempty"`
	Rules        int           `json:"rules"`
	Shadows      int           `json:"shadows,omitempty"`     // of the rules
	AllShadows   bool          `json:"all_shadows,omitempty"` // the daemon enforces no rule by itself
	Overrides    int           `json:"overrides"`
	Waiting      int           `json:"waiting"`
	Keys         int           `json:"keys,omitempty"`
	MaxKeys      int           `json:"max_keys,omitempty"`
}

// Engine is whether the engine decides, and since when.
type Engine struct {
	Kind   string `json:"kind"`
	Up     bool   `json:"up"`
	Since  Time   `json:"since"`
	Why    string `json:"why"`    // it is away
	Policy string `json:"policy"` // that answers while it is away
}

// Pushed is which pushed rules are in force, and how the stream is that they came over.
type Pushed struct {
	Server    string `json:"server"`
	Connected bool   `json:"connected"`
	Since     Time   `json:"since"` // it is connected, or away
	Why       string `json:"why"`   // it is away
	Version   string `json:"version"`
	At        *Time  `json:"at,omitempty"` // of the push; absent before the first one
	Restored  bool   `json:"restored"`     // from a file
	Refused   int    `json:"refused"`      // resources
}

// Daemons are those on the same engine.
type Daemons struct {
	Seen  int  `json:"seen"`  // at the last look
	Peers int  `json:"peers"` // that a local share of a limit is divided by
	Auto  bool `json:"auto"`  // Peers follows Seen
}

// Latency is the time that decisions took, in seconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Certificate is when the first certificate in the file of a flag ends.
type Certificate struct {
	Flag string `json:"flag"`
	Ends Time   `json:"ends"`
}

// Chart has decisions a second.
type Chart struct {
	Admitted []float32 `json:"admitted"`
	Refused  []float32 `json:"refused"`
}

// History has the last 15 minutes, the oldest first.
type History struct {
	From Time    `json:"from"` // the end of the first step
	Step float64 `json:"step"` // seconds
	Chart
	Rules map[string]Chart `json:"rules"`
}

// Point is a step of the history.
type Point struct {
	At       Time                  `json:"at"`
	Admitted float32               `json:"admitted"`
	Refused  float32               `json:"refused"`
	Rules    map[string][2]float32 `json:"rules"`
}

// RuleLine are the figures of a rule that has decided.
type RuleLine struct {
	Rule         string               `json:"rule"`
	Admitted     uint64               `json:"admitted"`
	Refused      uint64               `json:"refused"`
	AdmittedRate float64              `json:"admitted_rate"`
	RefusedRate  float64              `json:"refused_rate"`
	Takes        uint64               `json:"takes"` // calls that it admitted, even where another rule of the call bound
	TakesRate    float64              `json:"takes_rate"`
	Headroom     *float64             `json:"headroom,omitempty"`
	Fullest      string               `json:"fullest,omitempty"` // the key; with the scope admin
	Candidate    *metrics.Differences `json:"candidate,omitempty"`
	Shadow       *metrics.Differences `json:"shadow,omitempty"`
	IsShadow     bool                 `json:"is_shadow,omitempty"` // it refuses nothing
}

// The bounds of lists in a message.
const (
	mostKeys      = 20
	mostOverrides = 1000
)

// list is a part of messages that is sent when it has changed.
type list struct {
	text    []byte
	changed int // the tick
}

// frames are the messages of a tick. Viewers who have seen the same tick get the same bytes.
type frames struct {
	tick int
	at   time.Time // of the state
	now  *Now
	made map[view][]byte

	busiest, refused, fullest, banned, overrides, audit list
}

// view is the last tick that a viewer has seen, and whether it may see keys.
type view struct {
	tick int // 0 for nothing
	keys bool
}

// forget drops the messages of the last tick.
func (f *frames) forget() { f.made = map[view][]byte{} }

// collect gathers what messages are made of. The caller holds the lock of l.
func (f *frames) collect(l *Live, now time.Time) {
	state := l.o.Now()
	state.Latency, state.Reload = l.figures.latency(), l.reloaded.Load()
	f.now, f.at = &state, now
	full := l.o.Metrics.Top.Fullests()
	for name, r := range l.figures.rules {
		var s shown
		s.admitted, s.refused, s.takes = l.figures.rates(r)
		s.headroom = -1
		if key, known := full[name]; known {
			s.headroom, s.fullest = rounded(max(1-key.Share(), 0)), key.Key
		}
		s.isShadow = l.o.IsShadow != nil && l.o.IsShadow(name)
		if s != r.shown {
			r.shown, r.changed = s, f.tick
		}
	}
	f.busiest.set(f.tick, l.o.Metrics.Top.Busiest(mostKeys))
	f.refused.set(f.tick, l.o.Metrics.Top.Top("", top.Refused, mostKeys))
	f.banned.set(f.tick, l.o.Metrics.Banned.Keys(mostKeys))
	f.fullest.set(f.tick, l.o.Metrics.Top.Fullest("", mostKeys))
	entries := l.o.Overrides()
	f.overrides.set(f.tick, entries[:min(len(entries), mostOverrides)])
	f.audit.set(f.tick, l.trail.changes())
}

func (p *list) set(tick int, value any) {
	text, _ := json.Marshal(value) // texts and numbers
	if string(text) != string(p.text) {
		p.text, p.changed = text, tick
	}
}

// frame returns the message for a viewer, and its tick.
func (l *Live) frame(since view) ([]byte, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &l.frames
	if since.tick < l.figures.lost || since.tick < f.tick-mostMarks {
		since.tick = 0
	}
	if made := f.made[since]; made != nil {
		return made, f.tick
	}
	m := Message{At: timeOf(f.at), All: since.tick == 0, Now: *f.now}
	if r := m.Now.Reload; r != nil && !since.keys {
		m.Now.Reload = &Reload{At: r.At, OK: r.OK, Number: r.Number}
	}
	for _, name := range slices.Sorted(maps.Keys(l.figures.rules)) {
		if r := l.figures.rules[name]; r.changed > since.tick {
			m.Rules = append(m.Rules, r.line(name, since.keys))
		}
	}
	if m.All {
		m.History = l.figures.history()
	} else if l.figures.turned > since.tick {
		m.Sample = l.figures.point()
	}
	text, _ := json.Marshal(m)
	text = text[:len(text)-1]
	if since.keys {
		for _, part := range []struct {
			name string
			list
		}{{"busiest", f.busiest}, {"refused", f.refused}, {"fullest", f.fullest}, {"banned", f.banned}, {"overrides", f.overrides}, {"audit", f.audit}} {
			if part.changed > since.tick {
				text = append(append(text, `,"`+part.name+`":`...), part.text...)
			}
		}
	}
	text = append(text, '}')
	f.made[since] = text
	return text, f.tick
}

func (r *row) line(name string, keys bool) RuleLine {
	line := RuleLine{Rule: name, Admitted: r.Admitted, Refused: r.Refused, AdmittedRate: r.shown.admitted, RefusedRate: r.shown.refused, Takes: r.Takes, TakesRate: r.shown.takes, Candidate: r.Candidate, Shadow: r.Shadow, IsShadow: r.shown.isShadow}
	if r.shown.headroom >= 0 {
		line.Headroom = &r.shown.headroom
		if keys {
			line.Fullest = r.shown.fullest
		}
	}
	return line
}

// history returns all steps that have ended.
func (f *figures) history() *History {
	first := max(f.steps-points, 0)
	chart := func(h history) (c Chart) {
		c = Chart{[]float32{}, []float32{}}
		for i := first; i < f.steps; i++ {
			point := [2]float32{}
			if h != nil {
				point = h[i%points]
			}
			c.Admitted, c.Refused = append(c.Admitted, point[0]), append(c.Refused, point[1])
		}
		return c
	}
	h := &History{From: timeOf(f.ended[first%points]), Step: step.Seconds(), Chart: chart(f.all), Rules: map[string]Chart{}}
	for _, name := range f.charts() {
		h.Rules[name] = chart(f.rules[name].history)
	}
	return h
}

// point returns the last step. Rules without decisions in it are left out.
func (f *figures) point() *Point {
	at := (f.steps - 1) % points
	p := &Point{timeOf(f.ended[at]), f.all[at][0], f.all[at][1], map[string][2]float32{}}
	names := slices.Collect(maps.Keys(f.rules))
	of := func(name string) (point [2]float32) {
		if h := f.rules[name].history; h != nil { // it had decided at the last step
			point = h[at]
		}
		return point
	}
	sum := func(name string) float32 { return of(name)[0] + of(name)[1] }
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(sum(b), sum(a)), cmp.Compare(a, b)) })
	for _, name := range names[:min(len(names), 4*mostCharts)] {
		if sum(name) > 0 {
			p.Rules[name] = of(name)
		}
	}
	return p
}
