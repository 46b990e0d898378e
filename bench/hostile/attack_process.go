package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weirflow/weir"
)

var processAttacks = []attack{
	{"signals", "SIGHUP and SIGUSR1, again and again", (*attacker).signals},
	{"clock", "a wall clock that jumps ahead and is set back", (*attacker).clock},
	{"log", "a log without a reader", (*attacker).stallLog},
	{"second", "a second daemon on the state file", (*attacker).second},
	{"restart", "a restart in which the next daemon starts before the last one stops", (*attacker).restart},
	{"killed", "two daemons on one file that are killed while they save", (*attacker).killed},
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

// clock sets the daemon's wall clock ahead, and back at the end.
func (a *attacker) clock() {
	if !a.stepped.TryLock() { // another attack has set it
		return
	}
	defer a.stepped.Unlock()
	defer func() { _ = a.wall.set(a.now(), 0) }()
	for !a.done() {
		if err := a.wall.set(a.now(), int64(a.between(1, 4000))*1e6); err != nil {
			a.fatal(err)
			return
		}
		a.did("steps", 1)
		a.wait(time.Duration(a.between(100, 5000)) * time.Millisecond)
		_ = a.wall.set(a.now(), 0)
		a.wait(time.Duration(a.between(100, 5000)) * time.Millisecond)
	}
}

// stallLog stops reading the log and makes the daemon log.
func (a *attacker) stallLog() {
	d := a.current.Load()
	if err := d.log.stall(); err != nil {
		return // the daemon has just ended
	}
	defer d.log.flow()
	for !a.done() {
		if !d.stopping.Load() {
			d.signal(syscall.SIGUSR1)
		}
		a.leave(a.open(3, func(int) string { return "no request\r\n\r\n" }))
		a.wait(100 * time.Millisecond)
	}
	a.did("stalls", 1)
}

// second starts another daemon on the state file. That daemon must report the conflict and end.
func (a *attacker) second() {
	if !a.state.TryLock() { // another attack is restarting the daemon
		a.wait(time.Second)
		return
	}
	defer a.state.Unlock()
	d, err := launch(a.program, a.folder, a.flags()...)
	if err != nil {
		a.Break(promiseRestart, "a second daemon: %v", err)
		return
	}
	defer d.kill()
	if a.duration < time.Minute || a.random.IntN(2) == 0 {
		a.wait(lockPatience) // usually less than the daemon waits
	} else { // until it gives up, even after the turn
		select {
		case <-d.ended:
		case <-time.After(lockPatience + slack):
			a.Break(promiseState, "a second daemon on the state file still ran after %v; its log: %s", lockPatience+slack, d.log.tail())
		case <-a.current.Load().ended:
		}
	}
	a.did("daemons", 1)
	if address := listensOn(d.banner()); address != "" {
		a.Break(promiseState, "a second daemon on the state file listens, and will overwrite it")
	}
	select {
	case <-d.ended:
		if code := d.cmd.ProcessState.ExitCode(); code != 1 {
			a.Break(promiseState, "a second daemon on the state file ended with %d, not 1; its log: %s", code, d.log.tail())
		}
	default:
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

// killed lets two daemons save to one file and kills both. The file must still load.
func (a *attacker) killed() {
	file := filepath.Join(a.folder, fmt.Sprintf("killed%d", a.random.Uint64()))
	for !a.done() {
		first, err := launch(a.program, a.folder, "--http", "127.0.0.1:0", "--state", file, "--state-every", "0")
		if err != nil {
			return
		}
		if first.listens(patience) != nil { // it has ended and was reaped
			a.Break(promiseState, "a daemon on the file of one that was killed: %s", first.log.tail())
			return
		}
		second, err := launch(a.program, a.folder, "--http", "127.0.0.1:0", "--state", file, "--state-every", "0")
		if err != nil {
			first.kill()
			return
		}
		a.populate(first.address)
		for range a.between(1, 5) {
			first.signal(syscall.SIGUSR1)
			second.signal(syscall.SIGHUP)
			time.Sleep(time.Duration(a.between(0, 20)) * time.Millisecond)
		}
		first.kill()
		second.kill()
		a.did("daemons", 2)
		if err := loadable(file); err != nil {
			a.Break(promiseState, "two daemons on one file were killed while they saved: %v", err)
			return
		}
	}
}

// populate gives a daemon some state to save.
func (a *attacker) populate(address string) {
	var c client
	defer c.close()
	for i := range 50 {
		var requests []request
		for j := range 100 {
			requests = append(requests, request{"default", fmt.Sprint(i, j), 1})
		}
		if r := c.ask(address, takePath, bodyOf(requests...), style{}); r.outcome != answered {
			return
		}
	}
}

// loadable returns the error of loading a state file.
func loadable(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	_, err = weir.LoadMemory(bytes.NewReader(content), weir.MemoryOptions{})
	return err
}
