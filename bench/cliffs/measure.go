package main

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

// keys is the number of keys of a Keyed and a Memory.
const keys = 10_000

// row is a rule of one or more limits, each without its burst.
type row struct {
	name   string
	limits []func(admit bool) weir.Limit
}

func bucket(rate weir.Rate) func(bool) weir.Limit { return burst(rate, 1<<24) }

func burst(rate weir.Rate, most int64) func(bool) weir.Limit {
	return func(admit bool) weir.Limit {
		if admit {
			return weir.TokenBucket{Rate: rate, Burst: most}
		}
		return weir.TokenBucket{Rate: rate, Burst: 1}
	}
}

func window(period time.Duration) func(bool) weir.Limit {
	return func(admit bool) weir.Limit {
		if admit {
			return weir.FixedWindow{Rate: weir.Per(1<<22, period)}
		}
		return weir.FixedWindow{Rate: weir.Per(2, period)}
	}
}

func rows() []row {
	one := func(rate weir.Rate) row { return row{rate.String(), []func(bool) weir.Limit{bucket(rate)}} }
	minute, day := bucket(weir.PerMinute(5)), window(24*time.Hour)
	return []row{
		one(weir.PerSecond(10)),
		one(weir.PerSecond(3)), one(weir.PerMinute(7)), one(weir.PerSecond(60)), one(weir.PerSecond(300)),
		one(weir.PerSecond(11)), one(weir.PerSecond(333)), one(weir.PerSecond(999_983)), one(weir.PerSecond(1 << 20)),
		one(weir.PerHour(1 << 30)),
		{"10/s burst 2^40", []func(bool) weir.Limit{burst(weir.PerSecond(10), 1<<40)}},
		{"333/s burst 2^40", []func(bool) weir.Limit{burst(weir.PerSecond(333), 1<<40)}},
		{"fixed window /1d", []func(bool) weir.Limit{day}},
		{"5/m and window /1d", []func(bool) weir.Limit{minute, day}},
		{"5/m, window /1d, 10/s", []func(bool) weir.Limit{minute, day, bucket(weir.PerSecond(10))}},
		{"two of 333/s", []func(bool) weir.Limit{bucket(weir.PerSecond(333)), bucket(weir.PerSecond(334))}},
		{"333/s and window /1d", []func(bool) weir.Limit{bucket(weir.PerSecond(333)), day}},
	}
}

// measureAll returns the least ns of one decision in each cell of the table, by "row/column".
func measureAll(only string, window time.Duration, windows int) map[string]float64 {
	figures := map[string]float64{}
	for _, r := range rows() {
		if !strings.Contains(r.name, only) {
			continue
		}
		for _, admit := range []bool{true, false} {
			for column, next := range r.columns(admit) {
				figures[cell(r.name, column, admit)] = least(next, window, windows)
			}
		}
	}
	return figures
}

func cell(row, column string, admit bool) string {
	if admit {
		return row + "/" + column + "/admitted"
	}
	return row + "/" + column + "/refused"
}

// columns returns one decision of each column, with all keys known.
func (r row) columns(admit bool) map[string]func() {
	limits := make([]weir.Limit, len(r.limits))
	for i, limit := range r.limits {
		limits[i] = limit(admit)
	}
	var clock func() int64 // the default clock; refusals must not depend on the time that passes
	if !admit {
		clock = func() int64 { return 1_700_000_000_000_000_000 }
	}
	columns := map[string]func(){"Memory": r.memory(limits, clock, admit)}
	if len(limits) == 1 {
		columns["Limiter"] = limiter(limits[0], clock, admit)
		columns["Keyed"] = keyed(limits[0], clock, admit)
	}
	return columns
}

func limiter(limit weir.Limit, clock func() int64, admit bool) func() {
	l := must(weir.NewWith(limit, weir.Options{Clock: clock}))
	for range 2 {
		l.Allow()
	}
	return func() {
		if l.Allow() != admit {
			panic("cliffs: a limiter did not answer as the column says")
		}
	}
}

func keyed(limit weir.Limit, clock func() int64, admit bool) func() {
	k := must(weir.NewKeyedWith[string](limit, weir.Options{Clock: clock}))
	names, i := keyNames(), 0
	for range 2 {
		for _, name := range names {
			k.Allow(name)
		}
	}
	return func() {
		if k.Allow(names[i]) != admit {
			panic("cliffs: a key did not answer as the column says")
		}
		if i++; i == len(names) {
			i = 0
		}
	}
}

func (r row) memory(limits []weir.Limit, clock func() int64, admit bool) func() {
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	rule := must(weir.NewRule("r", limits...))
	names, i, ctx := keyNames(), 0, context.Background()
	for range 3 {
		for _, name := range names {
			_, _ = m.Take(ctx, rule.For(name, 1))
		}
	}
	return func() {
		if d, err := m.Take(ctx, rule.For(names[i], 1)); err != nil || d.Allowed != admit {
			panic("cliffs: the engine did not answer as the column says")
		}
		if i++; i == len(names) {
			i = 0
		}
	}
}

func keyNames() []string {
	names := make([]string, keys)
	for i := range names {
		names[i] = "user:" + strconv.Itoa(i)
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(keys, func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// least runs a decision in short windows, and returns the ns of one decision in the fastest of them.
func least(next func(), window time.Duration, windows int) float64 {
	const batch = 1000
	fastest := math.Inf(1)
	for range windows {
		decisions, start := 0, time.Now()
		for time.Since(start) < window {
			for range batch {
				next()
			}
			decisions += batch
		}
		fastest = min(fastest, float64(time.Since(start).Nanoseconds())/float64(decisions))
	}
	return fastest
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
