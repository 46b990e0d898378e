package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/bench/internal/localredis"
)

// world is the state that attacks and honest clients share.
type world struct {
	config
	begun     time.Time
	folder    string
	program   string
	idle      *idleHandler
	current   atomic.Pointer[daemon] // the daemon that honest clients use
	redis     string                 // the address of the server; "" for the memory engine
	ledger    *ledger
	pool      pool
	mu        sync.Mutex
	worst     worst       // guarded by mu
	memory    int64       // the most of a daemon, in KiB; guarded by mu
	followers []*follower // whose bounds are checked at the end
	// held counts the connections of attacks other than crowds.
	held atomic.Int64
	// crowd counts the attacks that use up the daemon's connections. During such an attack the daemon may refuse a
	// new connection.
	crowd atomic.Int64
	// last is true while the last daemon of the run stops.
	last atomic.Bool
	// fatal ends the run when later results would mean nothing.
	fatal context.CancelCauseFunc
	// state is held by attacks that need the daemon and its file to themselves.
	state sync.Mutex
}

// now returns the time since the start of the run.
func (w *world) now() int64 { return int64(time.Since(w.begun)) }

// The promises that a run checks.
const (
	promiseAnswered = "every honest request is answered"
	promiseCounted  = "every honest request is counted once"
	promiseBounds   = "limits answer exactly and keep their bounds"
	promiseOnTime   = "no answer is late"
	promiseRunning  = "the daemon runs until a signal stops it"
	promiseStop     = "the daemon stops cleanly within its grace"
	promiseRestart  = "the next daemon takes over"
	promiseState    = "the state file is whole"
	promiseMemory   = "the daemon's memory is bounded"
	promiseRefused  = "attacks are refused in words"
)

// hostile makes the run on one engine.
func hostile(ctx context.Context, c config) (err error) {
	folder, err := os.MkdirTemp("", "weir-hostile-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	w := &world{config: c, folder: folder, program: c.weir, ledger: newLedger(), worst: worst{running: map[string]int{}}}
	if w.program == "" {
		if w.program, err = buildDaemon(folder); err != nil {
			return err
		}
	}
	if w.program, err = filepath.Abs(w.program); err != nil {
		return err
	}
	if w.idle, err = startIdle(); err != nil {
		return err
	}
	defer w.idle.stop()
	if w.engine == onRedis {
		var end func()
		if w.redis, end, err = localredis.Start(); err != nil {
			return err
		}
		defer end()
	}
	d, err := startDaemon(w.program, folder, patience, w.flags()...)
	if err != nil {
		return err
	}
	w.current.Store(d)
	w.begun = time.Now()
	w.fight(ctx)
	w.Note("on %s, the daemon was at most %v later than the idle handler: %s", w.engine, short(w.worst.by), w.worst.text)
	w.Note("on %s, the most memory of a daemon was %d MiB", w.engine, w.memory>>10)
	return nil
}

// flags returns the flags of the attacked daemon.
func (w *world) flags() []string {
	flags := []string{"--http", "127.0.0.1:0", "--drain", drain.String(), "--grace", grace.String()}
	if w.redis != "" {
		flags = append(flags, "--engine", "redis://"+w.redis, "--deadline", "2s") // a busy machine answers late
	} else {
		flags = append(flags, "--state", filepath.Join(w.folder, "state"), "--state-every", "1s", "--max-keys", fmt.Sprint(mostKeys))
	}
	for _, rule := range append(honestRules(w.engine), preyRules(w.engine)...) {
		flags = append(flags, "--rule", rule)
	}
	return flags
}

// mostKeys is the daemon's bound on the keys of a limit. Floods exceed it.
const mostKeys = 20_000

// fight runs the attacks and the honest clients, then stops the attacked daemon and compares its file with the
// answers of the honest clients.
func (w *world) fight(ctx context.Context) {
	ctx, fatal := context.WithCancelCause(ctx)
	defer fatal(nil)
	w.fatal = fatal
	peaceful, endHonest := context.WithCancel(ctx)
	attacked, endAttacks := context.WithCancel(ctx)
	defer endHonest()
	defer endAttacks()
	var clients, attackers sync.WaitGroup
	w.startHonest(peaceful, &clients)
	turns := w.startAttacks(attacked, &attackers)
	attackers.Go(func() { w.watchDaemon(attacked) })
	w.waitForTheEnd(ctx, turns)
	endHonest()
	clients.Wait()
	if ctx.Err() == nil {
		w.state.Lock() // prevents further restarts
		w.ledger.audit(w)
		w.checkBounds()
		w.lastStop()
		w.state.Unlock()
	}
	endAttacks()
	attackers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		w.Say("the run was ended early: %v", cause)
		w.current.Load().kill()
		return
	}
	w.afterwards()
}

// waitForTheEnd waits for the duration, and until each attack has had a turn.
func (w *world) waitForTheEnd(ctx context.Context, turns <-chan struct{}) {
	progress := time.NewTicker(time.Minute)
	defer progress.Stop()
	over := time.After(w.duration)
	for over != nil || turns != nil {
		select {
		case <-ctx.Done():
			return
		case <-over:
			over = nil
		case <-turns:
			turns = nil
		case <-progress.C:
			w.Say("%v", time.Since(w.begun).Round(time.Second))
		}
	}
}

// watchDaemon ends the run if the daemon ends without a signal.
func (w *world) watchDaemon(ctx context.Context) {
	for ctx.Err() == nil {
		d := w.current.Load()
		select {
		case <-ctx.Done():
		case <-d.ended:
			if !d.stopping.Load() {
				w.Break(promiseRunning, "daemon %d ended without a signal, with %v after %v; its log: %s", d.number, d.cmd.ProcessState, time.Since(d.begun).Round(time.Millisecond), d.tail())
				w.fatal(errors.New("the daemon is gone"))
				return
			}
			pause(ctx, 10*time.Millisecond)
		}
	}
}

// lastStop stops the attacked daemon.
func (w *world) lastStop() {
	d := w.current.Load()
	d.auditMemory(w)
	since := time.Now()
	w.last.Store(true)
	d.terminate()
	took, err := d.wait(since, drain+grace+slack)
	w.Note("on %s, the last stop took %v", w.engine, short(took))
	if err != nil {
		w.Break(promiseStop, "%v", err)
	}
}

// afterwards starts a daemon on the last state file and audits it.
func (w *world) afterwards() {
	d, err := startDaemon(w.program, w.folder, patience, w.flags()...)
	if err != nil {
		w.Break(promiseState, "a daemon on the file that the last one left: %v", err)
		return
	}
	w.current.Store(d)
	w.last.Store(false)
	w.ledger.audit(w)
	w.pool.audit(w)
	since := time.Now()
	d.terminate()
	if _, err := d.wait(since, drain+grace+slack); err != nil {
		w.Break(promiseStop, "a daemon that is not attacked: %v", err)
	}
}
