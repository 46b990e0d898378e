package main

import (
	"fmt"
	"strings"
	"time"
)

// over is by how much a call exceeded its deadline and the slack.
func (r *record) over() int64 { return r.Answered - r.Sent - r.Deadline - slack.Microseconds() }

// unexplained is by how much a call exceeded its deadline, the slack and what the machine explains: the lateness of the
// control timer, or the time for which threads of the process waited for a core.
func (r *record) unexplained() int64 { return r.over() - max(r.Control, r.Waited, 0) }

// checkLate returns the calls that were later than the machine explains.
func (b *book) checkLate() (all []broken) {
	for _, r := range b.late {
		if r.What != bystander && r.unexplained() > 0 {
			all = append(all, broken{World: r.World, Promise: promiseOnTime, Subject: r.Subject, From: r.Sent, To: r.Answered, Text: r.lateness()})
		}
	}
	return all
}

func (r *record) lateness() string {
	micros := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	return fmt.Sprintf("%s of process %d took %v with a deadline of %v; a control timer was late by %v, and threads waited %v for a core",
		r.What, r.Process, micros(r.Answered-r.Sent), micros(r.Deadline), micros(r.Control), micros(r.Waited))
}

// lateTotals counts late calls, or bystanders.
type lateTotals struct {
	late, beyondTimer, beyondKernel int
	most                            time.Duration // beyond the control timer
}

func (b *book) lateTotals(bystanders bool) (t lateTotals) {
	for i := range b.late {
		r := &b.late[i]
		if (r.What == bystander) != bystanders {
			continue
		}
		t.late++
		if beyond := r.over() - max(r.Control, 0); beyond > 0 {
			t.beyondTimer++
			t.most = max(t.most, time.Duration(beyond)*time.Microsecond)
		}
		if r.unexplained() > 0 {
			t.beyondKernel++
		}
	}
	return t
}

func (r *result) writeLate(b *strings.Builder) {
	b.WriteString("\n## Deadlines\n\nA bystander is beside each call: it waits for the same deadline and needs no engine, so its delays are the machine's.\n\n| | calls | bystanders |\n|---|---:|---:|\n")
	calls, idle := r.lateTotals(false), r.lateTotals(true)
	row := func(what string, a, b any) string { return fmt.Sprintf("| %s | %v | %v |\n", what, a, b) }
	b.WriteString(row("went on until their deadline", r.count(passedBy(false)), r.count(passedBy(true))))
	b.WriteString(row(fmt.Sprintf("for more than %v after it", slack), calls.late, idle.late))
	b.WriteString(row("of these: longer than the control timer was late", calls.beyondTimer, idle.beyondTimer))
	b.WriteString(row("by at most", calls.most, idle.most))
	b.WriteString(row("of these: longer than threads of the process waited for a core, too", calls.beyondKernel, idle.beyondKernel))
}
