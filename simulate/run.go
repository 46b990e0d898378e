package simulate

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/replay"
	"github.com/weirflow/weir/internal/tape"
)

// run is one candidate in one scenario.
type run struct {
	scenario  *Scenario
	candidate replay.Candidate
	retries   []retry  // by stream
	begins    []uint32 // the first client of each stream
	start     int64    // start of the traffic
	now       int64
	judges    []*tape.Limits // one for each process
	live      int            // processes that take requests
	turn      int
	agenda    agenda
	lines     waitLines
	random    *rand.Rand
	attempts  int64
	ledger    ledger
	limit     int // the place of the candidate
}

func newRun(p Pattern, c replay.Candidate, s *Scenario, clients, offers int) (*run, error) {
	begin := p.begin()
	r := &run{scenario: s, candidate: c, start: begin, now: begin, live: max(1, s.Processes, s.Sticky), random: draws{s.Seed, 0}.source(drawJitter)}
	r.judges = make([]*tape.Limits, r.live)
	for i := range r.judges {
		if err := r.begin(i); err != nil {
			return nil, err
		}
	}
	client := 0
	for i := range p.streams {
		r.retries, r.begins = append(r.retries, p.streams[i].retry), append(r.begins, uint32(client))
		client += p.streams[i].population()
	}
	r.lines = waitLines{perClient: s.PerClient, processes: r.live, waiting: map[int]*waitLine{}}
	r.ledger = newLedger(s, begin, clients, offers)
	if s.Lose > 0 {
		r.agenda.add(agendaItem{at: tape.Later(begin, int64(s.Lose)), kind: loseProcess})
	}
	if s.Return > 0 {
		r.agenda.add(agendaItem{at: tape.Later(begin, int64(s.Return)), kind: returnProcess})
	}
	return r, nil
}

// begin starts a process with nothing in memory.
func (r *run) begin(process int) (err error) {
	limits := r.candidate.Limits
	if r.scenario.Sticky == 0 {
		limits = slices.Clone(limits)
		for i, limit := range limits {
			if limits[i], err = share(limit, process, len(r.judges)); err != nil {
				return err
			}
		}
	}
	r.judges[process], err = tape.Of(limits...)
	return err
}

// all decides on every offer and on what follows from it. Clients do not come back after the end of the traffic, but
// waiting callers get their answer.
func (r *run) all(offers []offer, progress *tape.Progress) error {
	for _, o := range offers {
		at := r.start + o.at
		if err := r.until(at); err != nil {
			return err
		}
		r.now = at
		if err := r.ask(caller{first: at, client: o.client, cost: o.cost}); err != nil {
			return err
		}
		progress.Step()
	}
	return r.until(math.MaxInt64)
}

// until lets happen what is due up to the instant.
func (r *run) until(at int64) error {
	for r.agenda.Len() > 0 && r.agenda.due[0].at <= at {
		if err := r.happen(heap.Pop(&r.agenda).(agendaItem)); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) happen(e agendaItem) error {
	r.now = e.at
	switch e.kind {
	case checkLine:
		return r.advance(e.line)
	case loseProcess:
		r.lose()
		return nil
	case returnProcess:
		r.live++
		return r.begin(r.live - 1)
	}
	return r.ask(e.caller)
}

// key returns the key of a caller: its client, or the same for all clients if they share the limit.
func (r *run) key(c caller) string {
	if !r.scenario.PerClient {
		return ""
	}
	return strconv.FormatUint(uint64(c.client), 10)
}

// ask makes one attempt, at the next process or at the client's own daemon.
func (r *run) ask(c caller) error {
	if r.attempts++; r.attempts > maxOffered {
		return fmt.Errorf("more than %d attempts, with those of clients that come back", maxOffered)
	}
	process := 0
	switch {
	case r.scenario.Sticky > 0:
		process = daemonOf(c.client, r.live)
	case r.live > 1:
		r.turn = (r.turn + 1) % r.live
		process = r.turn
	}
	c.asked = r.now
	r.ledger.offer(c)
	if r.scenario.Wait > 0 {
		return r.join(process, c)
	}
	d, err := r.judges[process].Take(r.now, r.key(c), int64(c.cost))
	if err == nil {
		r.answer(c, d)
	}
	return err
}

// answer writes the decision down. A client that retries comes back.
func (r *run) answer(c caller, d weir.Decision) {
	if tell := r.scenario.Attempts; tell != nil {
		tell(Attempt{r.limit, time.Unix(0, r.now).UTC(), time.Duration(r.now - r.start), int(c.client), int64(c.cost), int(c.retries), d})
	}
	if d.Allowed {
		r.ledger.admit(c, r.now, int64(d.Delay))
		return
	}
	r.ledger.refuse(c, r.now)
	wait, again := r.retryOf(c.client).after(d, c.retries, r.random)
	if at := tape.Later(r.now, int64(wait)); again && at > r.now && at-r.start < int64(r.scenario.Length) {
		c.retries++
		r.agenda.add(agendaItem{at: at, caller: c})
	}
}

func (r *run) retryOf(client uint32) *retry {
	i := len(r.begins) - 1
	for r.begins[i] > client {
		i--
	}
	return &r.retries[i]
}

// waitLines are the waiting callers: a line for each process, or for each client of a process, in order of arrival.
type waitLines struct {
	perClient bool
	processes int
	waiting   map[int]*waitLine
}

type waitLine struct {
	callers []caller
	head    int
}

func (l *waitLine) empty() bool { return l.head == len(l.callers) }

func (l *waitLines) of(process int, client uint32) int {
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
		l = &waitLine{}
		r.lines.waiting[at] = l
	}
	l.callers, l.head = append(l.callers[:0], c), 0
	r.look(at, d, c)
	return nil
}

// grant takes only what a look says is admitted, because waiting does not count as a refused attempt.
func (r *run) grant(process int, c caller) (weir.Decision, error) {
	d, err := r.judges[process].Peek(r.now, r.key(c), int64(c.cost))
	if err != nil || !d.Allowed {
		return d, err
	}
	return r.judges[process].Take(r.now, r.key(c), int64(c.cost))
}

// look plans the next look at a line: when the first caller may be admitted, or when it gives up.
func (r *run) look(at int, d weir.Decision, c caller) {
	end := tape.Later(c.asked, int64(r.scenario.Wait))
	next := min(tape.Later(r.now, int64(max(1, d.RetryAfter))), end)
	if d.RetryAfter > weir.MaxPeriod {
		next = end
	}
	r.agenda.add(agendaItem{at: max(next, r.now), kind: checkLine, line: at})
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
		if !d.Allowed && d.RetryAfter != weir.Never && r.now < tape.Later(c.asked, int64(r.scenario.Wait)) {
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

// agenda holds the events to come, as a heap with the earliest at its head. Events of one instant happen in the order
// that they were added.
type agenda struct {
	due   []agendaItem
	added uint64
}

// agendaItem is a request that comes back, a look at a line of waiting callers, or the loss or return of a process.
type agendaItem struct {
	at     int64
	order  uint64
	kind   itemKind
	line   int // for checkLine
	caller caller
}

type itemKind uint8

const (
	comeBack itemKind = iota
	checkLine
	loseProcess
	returnProcess
)

func (a *agenda) Len() int      { return len(a.due) }
func (a *agenda) Swap(i, j int) { a.due[i], a.due[j] = a.due[j], a.due[i] }
func (a *agenda) Push(d any)    { a.due = append(a.due, d.(agendaItem)) }
func (a *agenda) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(a.due[i].at, a.due[j].at), cmp.Compare(a.due[i].order, a.due[j].order)) < 0
}

func (a *agenda) Pop() any {
	last := len(a.due) - 1
	d := a.due[last]
	a.due = a.due[:last]
	return d
}

func (a *agenda) add(d agendaItem) {
	a.added++
	d.order = a.added
	heap.Push(a, d)
}
