package main

import (
	"fmt"
	"strings"
	"time"
)

// over is by how much a call exceeded its deadline and the slack.
func (r *record) over() int64 { return r.Answered - r.Sent - r.Deadline - slack.Microseconds() }

// lateness returns by how much a call exceeded its deadline, the slack and what the machine explains.
func (b *book) lateness(r *record) int64 {
	return r.over() - hops*b.busy.latest(r.Sent+r.Deadline-busySince.Microseconds(), r.Answered)
}

// checkLate returns the calls that were later than the machine explains.
func (b *book) checkLate() (all []broken) {
	for _, r := range b.late {
		if over := b.lateness(&r); over > 0 {
			all = append(all, broken{World: r.World, Promise: promiseOnTime, Subject: r.Subject, From: r.Sent, To: r.Answered,
				Text: fmt.Sprintf("%s of process %d took %v with a deadline of %v, %v longer than the machine explains", r.What, r.Process,
					micros(r.Answered-r.Sent), micros(r.Deadline), micros(over))})
		}
	}
	return all
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func (r *result) writeLate(b *strings.Builder) {
	unexplained, most := 0, int64(0)
	for i := range r.late {
		most = max(most, r.late[i].over())
		if r.lateness(&r.late[i]) > 0 {
			unexplained++
		}
	}
	fmt.Fprintf(b, "\n## Deadlines\n\n| calls that | |\n|---|---:|\n| went on until their deadline | %d |\n| for more than %v after it | %d |\n"+
		"| by at most | %v |\n| of these: longer than the machine explains | %d |\n", r.count(passedDeadlines), slack, len(r.late), micros(most), unexplained)
}
