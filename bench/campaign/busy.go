package main

import "time"

// busyEvery is how often a process notes how late its sleeps were.
const busyEvery = 100 * time.Millisecond

// A sleep is late from punctual on: a timer of an idle machine is late by less.
const (
	controlSleep = 10 * time.Millisecond
	punctual     = 2 * time.Millisecond
)

// noteBusy notes the latest of many short sleeps, again and again, until over is closed.
func (p *process) noteBusy(over <-chan struct{}) {
	for {
		began, late := time.Now(), time.Duration(0)
		for mark := began; mark.Sub(began) < busyEvery; {
			select {
			case <-over:
				return
			case <-time.After(controlSleep):
			}
			ended := time.Now()
			late = max(late, ended.Sub(mark)-controlSleep)
			mark = ended
		}
		if late > punctual {
			p.journal.write(record{Kind: recordBusy, Process: p.number, Units: late.Microseconds(), Sent: began.UnixMicro(), Answered: now()})
		}
	}
}

// busySince is how long before an instant a late sleep still explains a delay.
const busySince = time.Second

// hops is how often some process or server has to be woken, one after the other, until a caller in line knows that it
// goes: for a release, a signal or the end of a sleep, a question and its answer, on both sides and in the link between.
const hops = 8

// busyTimes is how late a sleep was, in us, by the time in steps of busyEvery.
type busyTimes map[int64]int64

func (b busyTimes) add(from, to, late int64) {
	for at := from / busyEvery.Microseconds(); at <= to/busyEvery.Microseconds(); at++ {
		b[at] = max(b[at], late)
	}
}

// latest returns how late a sleep was at most between two instants.
func (b busyTimes) latest(from, to int64) (late int64) {
	for at := from / busyEvery.Microseconds(); at <= to/busyEvery.Microseconds(); at++ {
		late = max(late, b[at])
	}
	return late
}
