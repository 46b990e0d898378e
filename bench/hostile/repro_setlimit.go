package main

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/weirflow/weir"
)

// setLimitRace changes the limit of a Keyed while callers take, again and again, and counts how often later keys are
// then kept outside the table, where they take several times its memory.
func setLimitRace(*prober) string {
	const runs, outside = 10_661, 120 // bytes allocated a key
	left := 0
	for range runs {
		k, err := raceSetLimit()
		if err != nil {
			return err.Error()
		}
		if allocatedPerKey(k) > outside {
			left++
		}
	}
	return fmt.Sprintf("%d of %d runs", left, runs)
}

func raceSetLimit() (*weir.Keyed[int], error) {
	limits := []weir.Limit{weir.TokenBucket{Rate: weir.PerSecond(1e6)}, weir.FixedWindow{Rate: weir.PerDay(1e9)}, weir.SlidingWindow{Rate: weir.PerDay(1e9)}}
	k, err := weir.NewKeyed[int](limits[2])
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	takes := func() {
		for key := range 20 {
			k.Allow(key)
		}
	}
	for caller := range 3 {
		all.Go(takes)
		all.Go(func() { _ = k.SetLimit(limits[caller%2]) })
	}
	all.Wait()
	takes() // the first decision may still repair the table
	return k, nil
}

func allocatedPerKey(k *weir.Keyed[int]) uint64 {
	const keys = 2000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for key := range keys {
		k.Allow(1000 + key)
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / keys
}
