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
		if r.unexplained() > 0 {
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

func (r *result) writeLate(b *strings.Builder) {
	beyondTimer, beyondKernel, most := 0, 0, int64(0)
	for i := range r.late {
		if beyond := r.late[i].over() - max(r.late[i].Control, 0); beyond > 0 {
			beyondTimer, most = beyondTimer+1, max(most, beyond)
		}
		if r.late[i].unexplained() > 0 {
			beyondKernel++
		}
	}
	fmt.Fprintf(b, "\n## Deadlines\n\n| calls that | |\n|---|---:|\n| went on until their deadline | %d |\n| for more than %v after it | %d |\n| of these: longer than the control timer was late | %d |\n"+
		"| by at most | %v |\n| of these: longer than threads of the process waited for a core, too | %d |\n", r.count(passedDeadlines), slack, len(r.late), beyondTimer, time.Duration(most)*time.Microsecond, beyondKernel)
}
