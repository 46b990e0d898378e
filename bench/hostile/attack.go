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

// attack is a kind of hostile behaviour. It runs until its context ends.
type attack struct {
	name  string
	about string
	run   func(*attacker)
}

// attacks are all attacks, in the order of the report.
var attacks []attack

func init() { // a composite literal would be an initialization cycle
	attacks = slices.Concat(connectionAttacks, requestAttacks, keyAttacks, reservationAttacks, processAttacks)
}

func attackNames() (names []string) {
	for _, a := range attacks {
		names = append(names, a.name)
	}
	return names
}

// preyRules returns the rules that only attackers use.
func preyRules(engine string) []string {
	pipe := "pipe=token bucket 1/12h burst 9007199254740992"
	if engine == onRedis {
		pipe = "pipe=fixed window 1000000000/365d"
	}
	return []string{"prey=token bucket 100/s burst 100", pipe, "held=concurrency 3", "work=concurrency 3", "mixed=concurrency 3 and token bucket 1000000/s burst 1000000", "leased=concurrency 3 lease 2s"}
}

// attacker runs one turn of an attack.
type attacker struct {
	context.Context
	*world
	name   string
	random *rand.Rand
}

// did counts an event for the report.
func (a *attacker) did(what string, n int) { a.Count(a.name, what, int64(n)) }

// deck deals the attacks to the lanes: each once, then each again.
type deck struct {
	mu     sync.Mutex
	random *rand.Rand
	all    []attack
	left   []attack
	missed int // turns missing until each attack has had one
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

// over counts a finished turn.
func (d *deck) over() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.missed--; d.missed == 0 {
		close(d.turns)
	}
}

// startAttacks starts the lanes. The channel is closed when each attack has had a turn.
func (w *world) startAttacks(ctx context.Context, attackers *sync.WaitGroup) <-chan struct{} {
	d := &deck{random: rand.New(rand.NewPCG(w.Seed, 0)), turns: make(chan struct{})}
	for _, a := range attacks {
		if len(w.only) > 0 && !slices.Contains(w.only, a.name) {
			continue
		}
		d.all = append(d.all, a)
	}
	d.missed = len(d.all)
	for lane := range w.lanes {
		random := rand.New(rand.NewPCG(w.Seed, 1000+uint64(lane)))
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

// turn runs one attack for a time.
func (w *world) turn(ctx context.Context, next attack, random *rand.Rand) {
	most := w.longTurn()
	ctx, cancel := context.WithTimeout(ctx, most/4+time.Duration(random.Int64N(int64(most))))
	defer cancel()
	defer w.begins(next.name)()
	next.run(&attacker{ctx, w, next.name, random})
}

// longTurn returns the approximate length of a turn. Short runs have short turns, so that they have many.
func (w *world) longTurn() time.Duration {
	return min(max(w.duration/20, 400*time.Millisecond), 12*time.Second)
}

// done reports whether the turn has ended.
func (a *attacker) done() bool { return a.Err() != nil }

// wait waits for d or until the turn ends.
func (a *attacker) wait(d time.Duration) { pause(a, d) }

// between draws a number from a range.
func (a *attacker) between(least, most int) int { return least + a.random.IntN(most-least+1) }

// address returns the address of the current daemon.
func (a *attacker) address() string { return a.current.Load().address }

// dial opens a connection. It returns nil if that fails, as while a daemon stops.
func (a *attacker) dial() net.Conn {
	conn, err := net.DialTimeout("tcp", a.address(), 2*time.Second)
	if err != nil {
		a.did("connections refused", 1)
		a.wait(5 * time.Millisecond)
		return nil
	}
	_ = conn.(*net.TCPConn).SetLinger(0) // leaves no connection in TIME_WAIT
	_ = conn.SetDeadline(time.Now().Add(patience))
	a.did("connections", 1)
	return conn
}

// mostHeld bounds the connections of all attacks except a crowd, so that honest clients find room.
const mostHeld = 3500

// open opens up to n connections and sends the text of greet on each.
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

// leave closes connections that open has opened, and gives the daemon a moment to notice.
func (a *attacker) leave(conns []net.Conn) {
	closeAll(conns)
	time.AfterFunc(aftermath, func() { a.held.Add(-int64(len(conns))) })
}

func closeAll(conns []net.Conn) {
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// begins counts a turn of an attack, which lasts until the caller calls over.
func (w *world) begins(attack string) (over func()) {
	w.Count(attack, "turns", 1)
	add := func(n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.worst.running[attack] += n; w.worst.running[attack] == 0 {
			delete(w.worst.running, attack)
		}
	}
	add(1)
	return func() { add(-1) }
}
