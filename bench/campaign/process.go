package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

// assignment is the first line that a process reads.
type assignment struct {
	Seed    uint64
	Process int
	URLs    map[int]string // by world
}

// order is a later line: a fault for one world, or the end.
type order struct {
	World int
	What  string        // stall, slow, cut, clock, end
	For   time.Duration // how long; for clock, how far ahead the clock is
	Delay time.Duration // of slow
	Times int64         // of cut
}

// serveProcess asks all worlds, and writes what it was answered, until it is ordered to end.
func serveProcess(in io.Reader, out io.Writer) error {
	lines := json.NewDecoder(bufio.NewReader(in))
	var a assignment
	if err := lines.Decode(&a); err != nil {
		return err
	}
	all, err := subjects()
	if err != nil {
		return err
	}
	p := &process{number: a.Process, journal: newJournal(out), subjects: all, counts: map[tally]int64{}}
	for world, url := range a.URLs {
		if err := p.connect(world, url); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{}) // the callers finish their last calls after ctx has ended
	defer close(over)
	go p.noteBusy(over)
	var callers sync.WaitGroup
	for number, w := range p.worlds {
		for i := range callersOfWorld + waitersOfWorld {
			random := rand.New(rand.NewPCG(a.Seed, uint64(a.Process)<<16|uint64(number)<<8|uint64(i)))
			c := &caller{process: p, world: w, random: random}
			if i < callersOfWorld {
				callers.Go(func() { c.call(ctx) })
			} else {
				callers.Go(func() { c.wait(ctx) })
			}
		}
	}
	err = p.obey(lines)
	cancel()
	callers.Wait()
	if err != nil {
		return err
	}
	p.finish()
	return p.journal.flush()
}

// The callers of a process for one world: those that ask, and those that wait in a queue. The queue has no room for all.
const (
	callersOfWorld = 6
	waitersOfWorld = 7
	queueOfWorld   = 6
)

// process asks all worlds.
type process struct {
	number   int
	journal  *journal
	subjects []subject
	worlds   map[int]*connection

	mu     sync.Mutex
	counts map[tally]int64
}

// tally is an event in the servers of one world.
type tally struct {
	world int
	what  string
}

// connection is the engines of one world.
type connection struct {
	number  int
	link    *link
	engine  *redislimit.Engine // by the server's clock
	noting  *noting            // the same, for the queue
	queue   *pace.Queue
	clocked *redislimit.Engine // by the clock of this process
	ahead   atomic.Int64       // ns by which that is ahead of the machine's
}

func (p *process) connect(number int, url string) error {
	w := &connection{number: number}
	options, _, err := redislimit.ParseURL(url)
	if err != nil {
		return err
	}
	if w.link, err = startLink(); err != nil {
		return err
	}
	options.DialCtxFn = w.link.dial
	client, err := rueidis.NewClient(options)
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	if w.engine, err = redislimit.New(client, redislimit.Options{Lanes: lanes, Prefix: prefixServer}); err != nil {
		return err
	}
	w.noting = newNoting(p, w)
	if w.queue, err = pace.NewQueue(w.noting, pace.QueueOptions{Queue: queueOfWorld}); err != nil {
		return err
	}
	clock := func() int64 { return time.Now().UnixNano() + w.ahead.Load() }
	if w.clocked, err = redislimit.New(client, redislimit.Options{Lanes: lanes, Prefix: prefixClock, Clock: clock}); err != nil {
		return err
	}
	if p.worlds == nil {
		p.worlds = map[int]*connection{}
	}
	p.worlds[number] = w
	return nil
}

// The engines' options. Few lanes make calls of a cluster worth sharing.
const (
	lanes        = 8
	prefixServer = "campaign"
	prefixClock  = "clocked"
)

// obey carries out orders until the end.
func (p *process) obey(lines *json.Decoder) error {
	for {
		var o order
		if err := lines.Decode(&o); err != nil {
			return err
		}
		if o.What == "end" {
			return nil
		}
		w := p.worlds[o.World]
		if w == nil {
			continue
		}
		until := time.Now().Add(o.For).UnixNano()
		switch o.What {
		case "stall":
			w.link.stalled.Store(until)
		case "slow":
			w.link.delay.Store(int64(o.Delay))
			w.link.slowed.Store(until)
		case "cut":
			w.link.cuts.Add(o.Times)
		case "clock":
			w.ahead.Store(int64(o.For))
		}
	}
}

// count counts an event for the report.
func (p *process) count(world int, what string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[tally{world, what}] += n
}

// settles bounds the time in which the engines have to finish what they do in the background.
const settles = 70 * time.Second

// finish waits until nothing is left in the engines, and writes the counts.
func (p *process) finish() {
	deadline := time.Now().Add(settles)
	for number, w := range p.worlds {
		if n := w.queue.Waiting(); n > 0 {
			p.left(number, "waiting callers", n)
		}
		for _, e := range []*redislimit.Engine{w.engine, w.clocked} {
			for s := e.Stats(); left(s) > 0 && time.Now().Before(deadline); s = e.Stats() {
				time.Sleep(10 * time.Millisecond)
			}
			s := e.Stats()
			for what, n := range map[string]int{"undos": s.Undoing, "slots that are renewed or released": s.Held, "calls": s.InFlight, "queued decisions": s.Queued} {
				if n > 0 {
					p.left(number, what, n)
				}
			}
			for what, n := range map[string]uint64{"calls of the script": s.Calls, "decisions": s.Decisions, "late answers": s.Late, "late takes undone": s.GivenBack, "undos given up": s.Abandoned} {
				p.count(number, "engine: "+what, int64(n))
			}
			e.Close()
		}
	}
	for of, n := range p.counts {
		p.journal.write(record{Kind: recordCount, World: of.world, Process: p.number, What: of.what, Units: n})
	}
}

func (p *process) left(world int, what string, n int) {
	p.journal.write(record{Kind: recordLeft, World: world, Process: p.number, What: what, Units: int64(n)})
}

func left(s redislimit.Stats) int { return s.Undoing + s.Held + s.InFlight + s.Queued }
