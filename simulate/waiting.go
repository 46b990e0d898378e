package simulate

import (
	"maps"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// lines are the waiting callers: a line for each process, or for each client of a process, in order of arrival.
type lines struct {
	perClient bool
	processes int
	waiting   map[int]*line
}

type line struct {
	callers []caller
	head    int
}

func (l *line) empty() bool { return l.head == len(l.callers) }

func (l *lines) of(process int, client uint32) int {
	if !l.perClient {
		return process
	}
	return int(client)*l.processes + process
}

// join lets a caller wait in line, unless it is admitted at once or can never be.
func (r *run) join(process int, c caller) error {
	at := r.lines.of(process, c.client)
	l := r.lines.waiting[at]
	if l != nil && !l.empty() {
		l.callers = append(l.callers, c)
		return nil
	}
	d, err := r.grant(process, c)
	if err != nil || d.Allowed || d.RetryAfter == weir.Never {
		if err == nil {
			r.answer(c, d)
		}
		return err
	}
	if l == nil {
		l = &line{}
		r.lines.waiting[at] = l
	}
	l.callers, l.head = append(l.callers[:0], c), 0
	r.look(at, d, c)
	return nil
}

// grant takes only what a look says is admitted, because waiting does not count as a refused attempt.
func (r *run) grant(process int, c caller) (weir.Decision, error) {
	d, err := r.judges[process].peek(c.client, int64(c.cost))
	if err != nil || !d.Allowed {
		return d, err
	}
	return r.judges[process].take(c.client, int64(c.cost))
}

// look plans the next look at a line: when the first caller may be admitted, or when it gives up.
func (r *run) look(at int, d weir.Decision, c caller) {
	end := later(c.asked, int64(r.scenario.Wait))
	next := min(later(r.now, int64(max(1, d.RetryAfter))), end)
	if d.RetryAfter > weir.MaxPeriod {
		next = end
	}
	r.agenda.add(event{at: max(next, r.now), kind: checkLine, line: at})
}

// advance answers callers from the head of a line until one must continue to wait.
func (r *run) advance(at int) error {
	process := at % r.lines.processes
	l := r.lines.waiting[at]
	for !l.empty() {
		c := l.callers[l.head]
		d, err := r.grant(process, c)
		if err != nil {
			return err
		}
		if !d.Allowed && d.RetryAfter != weir.Never && r.now < later(c.asked, int64(r.scenario.Wait)) {
			r.look(at, d, c)
			return nil
		}
		l.head++
		r.answer(c, d)
	}
	return nil
}

// lose ends the last process. Its callers are refused and may come back, to the other processes.
func (r *run) lose() {
	r.live--
	for _, at := range slices.Sorted(maps.Keys(r.lines.waiting)) {
		l := r.lines.waiting[at]
		for at%r.lines.processes == r.live && !l.empty() {
			c := l.callers[l.head]
			l.head++
			r.answer(c, weir.Decision{RetryAfter: time.Second})
		}
	}
}
