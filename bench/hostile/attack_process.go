package main

import (
	"syscall"
	"time"
)

var processAttacks = []attack{
	{"signals", "SIGHUP and SIGUSR1, again and again", (*attacker).signals},
	{"restart", "a restart in which the next daemon starts before the last one stops", (*attacker).restart},
}

// signals sends the signals that a daemon survives.
func (a *attacker) signals() {
	for !a.done() {
		d := a.current.Load()
		if !d.stopping.Load() {
			d.signal([]syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1}[a.random.IntN(2)])
			a.did("signals", 1)
		}
		a.wait(time.Duration(a.between(1, 300)) * time.Millisecond)
	}
}

// restart starts the next daemon on the same file and then stops the last one. The honest clients move when the next
// daemon listens.
func (a *attacker) restart() {
	a.state.Lock()
	defer a.state.Unlock()
	if a.last.Load() {
		return
	}
	last := a.current.Load()
	next, err := launch(a.program, a.folder, a.flags()...)
	if err != nil {
		a.Break(promiseRestart, "%v", err)
		return
	}
	time.Sleep(time.Duration(a.between(0, 120)) * time.Millisecond)
	since := time.Now()
	last.terminate()
	stopped := make(chan error, 1)
	go func() {
		_, err := last.wait(since, drain+grace+slack)
		stopped <- err
	}()
	if err := next.listens(drain + grace + slack + lockPatience); err != nil {
		a.Break(promiseRestart, "%v", err)
		if next, err = startDaemon(a.program, a.folder, patience, a.flags()...); err != nil {
			a.fatal(err)
			return
		}
	}
	a.current.Store(next)
	a.Count("daemon", "restarts", 1)
	if err := <-stopped; err != nil {
		a.Break(promiseStop, "daemon %d at a restart: %v", last.number, err)
	}
}
