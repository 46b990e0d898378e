package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// report is the result of a run.
type report struct {
	Commit     string           `json:"commit"`
	Command    string           `json:"command"`
	Took       time.Duration    `json:"took_ns"`
	Honest     map[string]int64 `json:"honest"`
	Daemon     times            `json:"daemon"`
	Idle       times            `json:"idle_handler"`
	Worst      time.Duration    `json:"worst_lateness_ns"`
	WorstWhile string           `json:"worst_while"`
	Attacks    []attackReport   `json:"attacks"`
	Restarts   int64            `json:"restarts"`
	Accounts   accounts         `json:"accounts"`
	Stop       time.Duration    `json:"stop_ns"`
	Memory     int64            `json:"memory_kib"`
	Violations []violation      `json:"violations"`

	mu      sync.Mutex
	attacks map[string]*attackReport
	daemon  []time.Duration
	idle    []time.Duration
	running map[string]int
}

// accounts are the units of all accounts together, as the honest clients and the daemon counted them at the end.
type accounts struct {
	Keys     int   `json:"keys"`
	Answered int64 `json:"answered"`
	Counted  int64 `json:"counted"`
}

// times are the answer times of one server.
type times struct {
	Median time.Duration `json:"median_ns"`
	P99    time.Duration `json:"p99_ns"`
	P9999  time.Duration `json:"p9999_ns"`
	Most   time.Duration `json:"most_ns"`
}

// attackReport counts the events of an attack.
type attackReport struct {
	Name  string           `json:"name"`
	About string           `json:"about"`
	Turns int64            `json:"turns"`
	Did   map[string]int64 `json:"did"`
}

// violation is a broken promise with its first example.
type violation struct {
	Promise string        `json:"promise"`
	First   string        `json:"first"`
	At      time.Duration `json:"at_ns"`
	Times   int64         `json:"times"`
}

func newReport() *report {
	r := &report{Honest: make(map[string]int64), attacks: make(map[string]*attackReport), running: make(map[string]int)}
	for _, a := range attacks {
		r.attacks[a.name] = &attackReport{Name: a.name, About: a.about, Did: make(map[string]int64)}
	}
	return r
}

// broken records a violation and reports whether it is the first of its promise.
func (r *report) broken(at time.Duration, promise, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.Violations {
		if r.Violations[i].Promise == promise {
			r.Violations[i].Times++
			return false
		}
	}
	r.Violations = append(r.Violations, violation{promise, text, at, 1})
	return true
}

// honest counts outcomes of honest requests.
func (r *report) honest(what string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Honest[what] += n
}

// did counts events of an attack.
func (r *report) did(attack, what string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attacks[attack].Did[what] += n
}

// turn counts a turn of an attack, which lasts until the caller calls over.
func (r *report) turn(attack string) (over func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attacks[attack].Turns++
	r.running[attack]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.running[attack]--; r.running[attack] == 0 {
			delete(r.running, attack)
		}
	}
}

// timed records the times of an honest request and of its control.
func (r *report) timed(daemon, idle time.Duration, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.daemon, r.idle = append(r.daemon, daemon), append(r.idle, idle)
	if late := daemon - idle; late > r.Worst {
		r.Worst = late
		r.WorstWhile = fmt.Sprintf("%s, besides %s", what, strings.Join(slices.Sorted(maps.Keys(r.running)), ", "))
	}
}

// close computes the totals.
func (r *report) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Daemon, r.Idle = timesOf(r.daemon), timesOf(r.idle)
	for _, a := range attacks {
		if one := r.attacks[a.name]; one.Turns > 0 {
			r.Attacks = append(r.Attacks, *one)
		}
	}
}

func timesOf(all []time.Duration) times {
	if len(all) == 0 {
		return times{}
	}
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))] }
	return times{Median: at(0.5), P99: at(0.99), P9999: at(0.9999), Most: all[len(all)-1]}
}

// write writes the report as text or JSON.
func (r *report) write(out io.Writer, asJSON bool) {
	if !asJSON {
		r.print(out)
		return
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(r)
}

// print writes the report as text.
func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "%s\ncommit %s\n%v of attacks, %d restarts\n\n", r.Command, r.Commit, r.Took.Round(time.Second), r.Restarts)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "attack\tturns\twhat it did")
	for _, a := range r.Attacks {
		fmt.Fprintf(t, "%s\t%d\t%s\n", a.Name, a.Turns, counts(a.Did))
	}
	_ = t.Flush()
	fmt.Fprintf(out, "\nhonest requests: %s\n", counts(r.Honest))
	fmt.Fprintf(out, "%d shared keys: %d units admitted in answers, %d units counted by the daemon\n\n", r.Accounts.Keys, r.Accounts.Answered, r.Accounts.Counted)
	t = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "answers\tmedian\t99 %\t99.99 %\tlongest")
	for _, one := range []struct {
		name string
		times
	}{{"daemon", r.Daemon}, {"idle handler", r.Idle}} {
		fmt.Fprintf(t, "%s\t%v\t%v\t%v\t%v\n", one.name, short(one.Median), short(one.P99), short(one.P9999), short(one.Most))
	}
	_ = t.Flush()
	fmt.Fprintf(out, "the daemon was at most %v later than the idle handler: %s\nthe last stop took %v, and the most memory of a daemon was %d MiB\n\n", short(r.Worst), r.WorstWhile, short(r.Stop), r.Memory>>10)
	if len(r.Violations) == 0 {
		fmt.Fprintln(out, "no promise was broken")
		return
	}
	fmt.Fprintf(out, "%d promises were broken:\n", len(r.Violations))
	for _, v := range r.Violations {
		fmt.Fprintf(out, "- %s (%d times, first after %v): %s\n", v.Promise, v.Times, v.At.Round(time.Millisecond), v.First)
	}
}

func short(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// counts formats counters by name.
func counts(m map[string]int64) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d %s", m[name], name)
	}
	return text
}

// accounts records the totals of the last audit.
func (r *report) accounts(keys int, answered, counted int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Accounts = accounts{keys, answered, counted}
}

// memory records the resident memory of a daemon in KiB.
func (r *report) memory(peak int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Memory = max(r.Memory, peak)
}

// restarted counts a restart.
func (r *report) restarted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Restarts++
}
