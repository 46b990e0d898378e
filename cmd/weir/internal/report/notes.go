package report

import (
	"fmt"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// holds shows what reservations of work would have held.
func (p *replayPage) holds() {
	if len(p.Result.Holds) == 0 {
		return
	}
	t := &table{Columns: []column{{"limit", "key limit"}, {"held", ""}, {"admitted", "n"}, {"refused", "n"}, {"needlessly", "n"}, {"units used", "n"}, {"beyond the limit", "n"}}}
	for _, h := range p.Result.Holds {
		t.Rows = append(t.Rows, []string{shorten(visible(h.Limit)), h.Holds, plain.Thousands(h.Admitted), plain.Thousands(h.Refused), plain.Thousands(h.Needless), plain.Thousands(h.Used), plain.Thousands(h.Beyond)})
	}
	p.Sections = append(p.Sections, section{ID: "holds", Question: "What should a reservation hold?", Parts: []part{{Table: t}},
		Answer: []string{"The cost of work is known when it ends. Refused needlessly are requests whose true cost would have fitted; units beyond the limit did not fit when they were settled."}})
}

// notes says how the numbers came about.
func (p *replayPage) notes() {
	p.readingNotes()
	p.Notes = append(p.Notes, fmt.Sprintf("A %s is a value of %s in the log; each has a limit of its own.", p.who.one, visible(p.Key)))
	p.boundNotes("limits")
	p.Notes = append(p.Notes,
		"Each request was decided at the time of its line, as the daemon decides, and each limit as if it were the only one.",
		"A refused client may have come back later, or gone away. A log does not say, so that the replay went on as the log did.",
		"Most logs have whole seconds, and some stamp the end of a request. Requests that were spread over a second then seem to come at once, and limits look stricter than they are.")
	p.lastNotes()
}

// readingNotes says what was read.
func (p *replayPage) readingNotes() {
	p.Notes = append(p.Notes,
		fmt.Sprintf("%s of the log, one request each; %s could not be read and are in no number.", plain.Plural(p.Result.Lines, "line"), plain.Thousands(p.Result.Unparsed)))
	for _, r := range p.Result.Reasons {
		p.Notes = append(p.Notes, fmt.Sprintf("%s: the line %s.", plain.Plural(r.Lines, "unread line"), shorten(visible(r.Reason))))
	}
}

// boundNotes says what the page masks and cuts.
func (p *replayPage) boundNotes(limits string) {
	if p.names.secret != nil {
		p.Notes = append(p.Notes, fmt.Sprintf("The %s are masked by an HMAC whose secret was thrown away: a mask means the same %s throughout this page, and nobody can find out which. weir replay --report FILE --names shows them.", p.who.many, p.who.one))
	}
	if p.rows < MostRows {
		p.Notes = append(p.Notes, fmt.Sprintf("Tables have at most %d rows, so that the page stays below %s bytes.", p.rows, plain.Thousands(mostBytes)))
	}
	if n := len(p.Result.Limits); n > len(p.drawn) {
		p.Notes = append(p.Notes, fmt.Sprintf("Pictures and tables of %s show the %d %s of %d that refuse most.", p.who.many, len(p.drawn), limits, n))
	}
}

func (p *replayPage) lastNotes() {
	p.Notes = append(p.Notes,
		"Sums are over all requests, not only over the rows that a table has. The numbers are those of weir replay --format json.",
		"Made by "+maker()+".")
}
