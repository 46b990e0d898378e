package main

import (
	"context"
	"encoding/json"
	"fmt"
	"github.com/weirflow/weir/bench/internal/localredis"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/redislimit"
)

// result is what a campaign found.
type result struct {
	*book
	broken  []broken
	closest map[string]float64 // by limit: the units between the worst window and its bound
	took    time.Duration
	begun   time.Time
	machine []string // at the beginning
}

// campaign runs one campaign.
func campaign(ctx context.Context, c *config) (r *result, err error) {
	all, err := subjects()
	if err != nil {
		return nil, err
	}
	lanes, err := lanesOf(all)
	if err != nil {
		return nil, err
	}
	h := &localredis.Host{Wait: busyPatience}
	defer h.Close()
	worlds := map[int]*world{}
	if err := localredis.Recovered(func() {
		for number, name := range worldNames {
			if c.only == "" || c.only == name {
				worlds[number] = startWorld(h, number)
			}
		}
	}); err != nil {
		return nil, err
	}
	r = &result{book: newBook(all, lanes, worlds), begun: time.Now(), machine: measure.Machine(c.Command())}
	if err := r.run(ctx, c); err != nil {
		return nil, err
	}
	c.Say("checking %d accounts", len(r.accounts))
	r.broken, r.closest = r.check()
	r.broken = append(r.broken, r.leaked(redislimit.DefaultLease+5*time.Second)...)
	r.took = time.Since(r.begun)
	return r, nil
}

// run starts the processes, has the breakers cause faults for the duration, and ends the processes.
func (r *result) run(ctx context.Context, c *config) error {
	var mu sync.Mutex
	keep := func(next record) {
		mu.Lock()
		defer mu.Unlock()
		r.add(next)
	}
	askers := make([]*asker, c.processes)
	for i := range askers {
		a, err := startAsker(assignment{Seed: c.Seed, Process: i, URLs: r.urls()}, keep)
		if err != nil {
			return err
		}
		defer a.kill()
		askers[i] = a
	}
	ctx, cancel := context.WithTimeout(ctx, c.Duration)
	defer cancel()
	failed := make(chan error, len(askers))
	for _, a := range askers {
		go func() { failed <- a.wait() }()
	}
	breakers, deliver := sync.WaitGroup{}, func(process int, o order) { askers[process].send(o) }
	for number, w := range r.worlds {
		b := &breaker{world: w, ctx: ctx, random: rand.New(rand.NewPCG(c.Seed, uint64(number))), processes: c.processes, deliver: deliver}
		b.say = func(format string, values ...any) { c.Say(worldNames[number]+": "+format, values...) }
		breakers.Go(b.run)
	}
	go r.tell(ctx, c)
	select {
	case <-ctx.Done():
	case err := <-failed:
		cancel()
		breakers.Wait()
		return fmt.Errorf("the campaign did not last: %w", err)
	}
	breakers.Wait()
	pause(context.Background(), time.Second) // what is stalled or delayed arrives
	for _, a := range askers {
		a.send(order{What: "end"})
	}
	for range askers {
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

// tell says every minute how far the campaign is.
func (r *result) tell(ctx context.Context, c *config) {
	for minute := 1; ctx.Err() == nil; minute++ {
		pause(ctx, time.Minute)
		if ctx.Err() == nil {
			c.Say("%d of %.0f minutes", minute, c.Duration.Minutes())
		}
	}
}

func (r *result) urls() map[int]string {
	urls := map[int]string{}
	for number, w := range r.worlds {
		urls[number] = w.url
	}
	return urls
}

// asker is a process that asks.
type asker struct {
	cmd    *exec.Cmd
	mu     sync.Mutex
	orders io.WriteCloser
	read   chan error
}

func startAsker(a assignment, keep func(record)) (*asker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &asker{cmd: exec.Command(self, processFlag), read: make(chan error, 1)}
	p.cmd.Stderr = os.Stderr
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.read <- readJournal(out, keep) }()
	return p, json.NewEncoder(p.orders).Encode(a)
}

func (p *asker) send(o order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = json.NewEncoder(p.orders).Encode(o) // wait reports a process that has ended
}

// wait returns when the process has ended and its records are read.
func (p *asker) wait() error {
	err := <-p.read
	if ended := p.cmd.Wait(); ended != nil {
		return ended
	}
	return err
}

func (p *asker) kill() { _ = p.cmd.Process.Kill() }

// leaked waits for the longest lease and returns the slots that are taken after it, although all callers have left.
func (r *result) leaked(longest time.Duration) (all []broken) {
	deadline := time.Now().Add(longest)
	for number, w := range r.worlds {
		if w.given {
			continue
		}
		engine, err := redislimit.Open(w.url, redislimit.Options{Lanes: lanes, Prefix: prefixServer})
		if err != nil {
			all = append(all, broken{World: number, Promise: promiseLeaked, Subject: -1, Text: err.Error()})
			continue
		}
		for i := range r.subjects {
			if s := &r.subjects[i]; s.use == useSlots || s.use == useLine {
				if taken := awaitFree(engine, s, deadline); taken != "" {
					all = append(all, broken{World: number, Promise: promiseLeaked, Subject: i, From: r.to, To: now(), Text: taken})
				}
			}
		}
		engine.Close()
	}
	return all
}

// awaitFree returns "" as soon as all slots are free, and otherwise what is taken at the deadline.
func awaitFree(engine weir.Engine, s *subject, deadline time.Time) string {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		d, err := engine.Peek(ctx, s.request(0))
		cancel()
		if err == nil && d.Remaining == d.Limit {
			return ""
		}
		if time.Now().After(deadline) {
			return fmt.Sprintf("%v: %d of %d slots are free (%v)", s, d.Remaining, d.Limit, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
