package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/trial"
)

// use says which verbs a subject is asked with. Verbs that make the bound weaker have subjects of their own, so that
// most subjects are checked against the full bound.
type use uint8

const (
	useTake    use = iota // Take, Each, TakeUpTo, Peek, Record of a cost, with and without an identity
	useReturn             // Reserve and its settlements, and Record of a negative cost, too
	useReset              // Reset, too
	useSlots              // Reserve, Done and Cancel, and Take with a lease
	useBook               // Book and its Cancel, and Wait of a queue, too
	useClocked            // as useTake, by clocks of the processes that are set back and forth
	useLine               // Acquire of a queue: slots for which callers of all processes stand in line
	useRate               // acquired together with slots only
)

var useNames = [...]string{"take", "return", "reset", "slots", "book", "clock", "line", "rate"}

// alone reports whether subjects of a use can be asked without their slots or a queue.
func (u use) alone() bool { return u != useSlots && u != useLine && u != useRate }

// subject is one key under one rule. All processes have the same list, so its index names it.
type subject struct {
	rule   *weir.Rule
	key    string
	use    use
	bounds []trial.Bound
	beside int    // the index of a rate that some callers acquire together with these slots, or 0
	at     string // the key on whose lane this one is, or ""
}

func (s *subject) String() string { return s.rule.String() + " of " + s.key }

func (s *subject) request(cost int64) weir.Request {
	if s.at != "" {
		return s.rule.For(s.key, cost).Colocate(s.at)
	}
	return s.rule.For(s.key, cost)
}

// lease returns the lease of slots, in us.
func (s *subject) lease() int64 { return s.bounds[0].Period }

// The rules, chosen so that three processes ask for several times what each admits.
var limitTexts = []string{
	"token bucket 20/s burst 30",
	"leaky bucket 20/s queue 10",
	"fixed window 20/1s",
	"sliding window 20/1s",
	"sliding log 20/1s",
	"sliding log 60/1s count denied",
	"rate gate 20/1s",
	"cycle 20/1s",
	"sliding log 150/20s",
	"rate gate 450/90s",
	"token bucket 23333/h burst 50",
	"token bucket 25/s burst 25 and fixed window 100/7s",
	"sliding window 150/7s and sliding log 25/1s and token bucket 40/s burst 20",
}

var bookedTexts = []string{
	"token bucket 20/s burst 30",
	"rate gate 20/s",
	"token bucket 15/s burst 5 and rate gate 40/3s",
	"token bucket 5/s burst 4",
	"rate gate 8/2s",
}

// Slots for which callers wait, and the rate that some of them acquire at the same instant.
var lineTexts = [][2]string{
	{"concurrency 2 lease 3s", "token bucket 15/s burst 5"},
	{"concurrency 3 lease 2500ms", "sliding log 12/1s"},
	{"concurrency 1 lease 3s", ""},
	{"concurrency 2 lease 5s", ""},
}

var slotTexts = []string{"concurrency 4 lease 3s", "concurrency 3", "concurrency 6 lease 2500ms"}

// subjects returns all subjects.
func subjects() (all []subject, err error) {
	add := func(text string, u use, number int) {
		name := fmt.Sprintf("%s%d", useNames[u], len(all))
		rule, parseErr := weir.ParseRule(name + "=" + text)
		if parseErr != nil {
			err = parseErr
			return
		}
		for i := range number {
			all = append(all, subject{rule: rule, key: fmt.Sprintf("k%d.%d", len(all), i), use: u, bounds: trial.Bounds(rule.Limits(), time.Microsecond)})
		}
	}
	for _, text := range limitTexts {
		add(text, useTake, 2)
		add(text, useReset, 1)
		add(text, useClocked, 1)
		if !strings.HasPrefix(text, "leaky") {
			add(text, useReturn, 1)
		}
	}
	for _, text := range bookedTexts {
		add(text, useBook, 2)
	}
	for _, text := range slotTexts {
		add(text, useSlots, 2)
	}
	for _, text := range lineTexts {
		add(text[0], useLine, 1)
		if slots := len(all) - 1; text[1] != "" {
			add(text[1], useRate, 1)
			all[slots].beside, all[len(all)-1].at = len(all)-1, all[slots].key
		}
	}
	return all, err
}
