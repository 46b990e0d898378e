package simulate

import (
	"fmt"
	"math/rand/v2"

	"github.com/weirflow/weir"
)

// caller is a request on its way.
type caller struct {
	first   int64 // when it first asked
	asked   int64 // when this attempt began
	client  uint32
	cost    uint32
	retries uint32
}

// run is one candidate in one scenario.
type run struct {
	scenario *Scenario
	retries  []retry  // by stream
	begins   []uint32 // the first client of each stream
	start    int64    // of the traffic
	now      int64
	judges   []judge // one for each process
	live     int     // processes that take requests
	turn     int
	agenda   agenda
	lines    lines
	random   *rand.Rand
	attempts int64
	ledger   ledger
}

func newRun(p Pattern, c Candidate, s *Scenario, clients, offers int) (*run, error) {
	begin := p.begin()
	r := &run{scenario: s, start: begin, now: begin, live: max(1, s.Processes), random: draws{s.Seed, 0}.source(drawJitter)}
	for i := range r.live {
		limits := make([]weir.Limit, len(c.Limits))
		for j, limit := range c.Limits {
			var err error
			if limits[j], err = share(limit, i, r.live); err != nil {
				return nil, err
			}
		}
		j, err := newJudge(limits, s.PerClient, &r.now)
		if err != nil {
			return nil, err
		}
		r.judges = append(r.judges, j)
	}
	client := 0
	for i := range p.streams {
		r.retries, r.begins = append(r.retries, p.streams[i].retry), append(r.begins, uint32(client))
		client += p.streams[i].population()
	}
	r.lines = lines{perClient: s.PerClient, processes: r.live, waiting: map[int]*line{}}
	r.ledger = newLedger(s, begin, clients, offers)
	if s.Lose > 0 {
		r.agenda.add(event{at: later(begin, int64(s.Lose)), kind: loseProcess})
	}
	return r, nil
}

// all decides on every offer and on what follows from it. Clients do not come back after the end of the traffic, but
// waiting callers get their answer.
func (r *run) all(offers []offer, progress *progress) error {
	for _, o := range offers {
		at := r.start + o.at
		if err := r.until(at); err != nil {
			return err
		}
		r.now = at
		if err := r.ask(caller{first: at, client: o.client, cost: o.cost}); err != nil {
			return err
		}
		progress.step()
	}
	for !r.agenda.empty() {
		if err := r.happen(r.agenda.pop()); err != nil {
			return err
		}
	}
	return nil
}

// until lets happen what is due up to the instant.
func (r *run) until(at int64) error {
	for !r.agenda.empty() && r.agenda.next() <= at {
		if err := r.happen(r.agenda.pop()); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) happen(e event) error {
	r.now = e.at
	switch e.kind {
	case checkLine:
		return r.advance(e.line)
	case loseProcess:
		r.lose()
		return nil
	}
	return r.ask(e.caller)
}

// ask makes one attempt, at the next process.
func (r *run) ask(c caller) error {
	if r.attempts++; r.attempts > maxOffered {
		return fmt.Errorf("more than %d attempts, with those of clients that come back", maxOffered)
	}
	process := 0
	if r.live > 1 {
		r.turn = (r.turn + 1) % r.live
		process = r.turn
	}
	c.asked = r.now
	r.ledger.offer(c)
	if r.scenario.Wait > 0 {
		return r.join(process, c)
	}
	d, err := r.judges[process].take(c.client, int64(c.cost))
	if err == nil {
		r.answer(c, d)
	}
	return err
}

// answer writes the decision down. A client that retries comes back.
func (r *run) answer(c caller, d weir.Decision) {
	if d.Allowed {
		r.ledger.admit(c, r.now, int64(d.Delay))
		return
	}
	r.ledger.refuse(c, r.now)
	wait, again := r.retryOf(c.client).after(d, c.retries, r.random)
	if at := later(r.now, int64(wait)); again && at > r.now && at-r.start < int64(r.scenario.Length) {
		c.retries++
		r.agenda.add(event{at: at, caller: c})
	}
}

func (r *run) retryOf(client uint32) *retry {
	i := len(r.begins) - 1
	for r.begins[i] > client {
		i--
	}
	return &r.retries[i]
}
