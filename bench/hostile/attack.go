package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// attack is one way to be hostile. It runs until its context ends.
type attack struct {
	name  string
	about string
	run   func(*attacker)
}

// attacks are all of them. The order is that of the report.
var attacks []attack

func init() { // a table would refer to itself through the reports
	attacks = slices.Concat(connectionAttacks, requestAttacks, keyAttacks, processAttacks, stateAttacks)
}

func attackNames() (names []string) {
	for _, a := range attacks {
		names = append(names, a.name)
	}
	return names
}

// preyRules are asked by attackers alone.
var preyRules = []string{
	"prey=token bucket 100/s burst 100",
	"pipe=token bucket 1/12h burst 9007199254740992",
	"held=concurrency 3",
	"leased=concurrency 3 lease 2s",
}

// attacker makes one turn of an attack.
type attacker struct {
	context.Context
	*world
	name   string
	random *rand.Rand
}

// did counts something for the report.
func (a *attacker) did(what string, n int) { a.report.did(a.name, what, int64(n)) }

// deck deals the attacks to the lanes: each once, then each once again.
type deck struct {
	mu     sync.Mutex
	random *rand.Rand
	all    []attack
	left   []attack
	missed int // turns that are missing until each attack had one
	turns  chan struct{}
}

func (d *deck) draw() attack {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.left) == 0 {
		d.left = slices.Clone(d.all)
		d.random.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	next := d.left[0]
	d.left = d.left[1:]
	return next
}

// over counts a turn.
func (d *deck) over() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.missed--; d.missed == 0 {
		close(d.turns)
	}
}

// startAttacks starts the lanes. The channel is closed when each attack had a
// turn.
func (w *world) startAttacks(ctx context.Context, attackers *sync.WaitGroup) <-chan struct{} {
	d := &deck{random: rand.New(rand.NewPCG(w.seed, 0)), turns: make(chan struct{})}
	for _, a := range attacks {
		if len(w.only) == 0 || slices.Contains(w.only, a.name) {
			d.all = append(d.all, a)
		}
	}
	d.missed = len(d.all)
	for lane := range w.lanes {
		random := rand.New(rand.NewPCG(w.seed, 1000+uint64(lane)))
		attackers.Go(func() {
			for ctx.Err() == nil {
				w.turn(ctx, d.draw(), random)
				d.over()
				pause(ctx, time.Duration(random.Int64N(int64(w.longTurn()/4))))
			}
		})
	}
	return d.turns
}

// turn runs one attack for a while.
func (w *world) turn(ctx context.Context, next attack, random *rand.Rand) {
	most := w.longTurn()
	ctx, cancel := context.WithTimeout(ctx, most/4+time.Duration(random.Int64N(int64(most))))
	defer cancel()
	defer w.report.turn(next.name)()
	next.run(&attacker{ctx, w, next.name, random})
}

// longTurn returns how long an attack takes about, so that short runs have many, too.
func (w *world) longTurn() time.Duration {
	return min(max(w.duration/20, 400*time.Millisecond), 12*time.Second)
}

// done reports whether the turn is over.
func (a *attacker) done() bool { return a.Err() != nil }

// wait waits for the end of the turn, or less.
func (a *attacker) wait(d time.Duration) { pause(a, d) }

// between draws a number.
func (a *attacker) between(least, most int) int { return least + a.random.IntN(most-least+1) }

// address is where the daemon listens now.
func (a *attacker) address() string { return a.current.Load().address }

// dial opens a connection; nil if that is not possible, as while a daemon stops.
func (a *attacker) dial() net.Conn {
	conn, err := net.DialTimeout("tcp", a.address(), 2*time.Second)
	if err != nil {
		a.did("connections refused", 1)
		a.wait(5 * time.Millisecond)
		return nil
	}
	_ = conn.(*net.TCPConn).SetLinger(0) // an attacker leaves nothing behind on this machine
	_ = conn.SetDeadline(time.Now().Add(patience))
	a.did("connections", 1)
	return conn
}

// mostHeld is how many connections all attacks but a crowd hold at once, so that
// honest clients find room.
const mostHeld = 3500

// open opens up to n connections and sends on each what greet says.
func (a *attacker) open(n int, greet func(i int) string) (conns []net.Conn) {
	for i := range n {
		if a.done() || a.held.Load() >= mostHeld {
			break
		}
		if conn := a.dial(); conn != nil {
			a.held.Add(1)
			_, _ = io.WriteString(conn, greet(i))
			conns = append(conns, conn)
		}
	}
	return conns
}

// leave closes connections that open has opened. The daemon has a moment to see
// that they are gone.
func (a *attacker) leave(conns []net.Conn) {
	closeAll(conns)
	time.AfterFunc(aftermath, func() { a.held.Add(-int64(len(conns))) })
}

func closeAll(conns []net.Conn) {
	for _, conn := range conns {
		_ = conn.Close()
	}
}
