package weir_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/limittest"
)

// guavaLine is a scenario recorded from Guava; times are in microseconds.
type guavaLine struct {
	Kind   string
	Rate   float64
	Burst  float64 `json:"max_burst_seconds"`
	WarmUp float64 `json:"warmup_us"`
	Cold   float64 `json:"cold_factor"`
	Ops    []struct {
		Op, Error  string
		T, N, Wait int64
		Timeout    int64
		OK         bool
		Rate       float64
	}
}

// TestWaitPassesGuavasVectors runs Guava's scenarios through Wait, WaitMax and SetLimit in virtual time: every caller
// sleeps as long as Guava's callers had to. A scenario ends early where a limit cannot be expressed as a Rate and a
// Duration, where a wait is longer than time itself, or where the rate changes while a caller waits: Guava keeps the
// release times of waiting callers, and Weir reschedules them.
func TestWaitPassesGuavasVectors(t *testing.T) {
	played, ops := 0, 0
	for _, file := range limittest.Files(t) {
		for _, line := range file.Dialects {
			if line.Algorithm != "guava" {
				continue
			}
			var s guavaLine
			if err := json.Unmarshal(line.Line, &s); err != nil {
				t.Fatalf("%s: %v", line.ID, err)
			}
			limit, ok := s.limit(s.Rate)
			if !ok {
				t.Logf("%s not played: a rate of %v/s over %v s or %v µs is no Rate and Duration", line.ID, s.Rate, s.Burst, s.WarmUp)
				continue
			}
			played++
			synctest.Test(t, func(t *testing.T) { ops += s.play(t, line.ID, limit) })
		}
	}
	t.Logf("%d scenarios, %d operations", played, ops)
	if ops < 100 {
		t.Errorf("%d operations played, want hundreds", ops)
	}
}

// limit returns the scenario's limit at a rate. ok is false if no Rate and Duration express it exactly.
func (s *guavaLine) limit(perSecond float64) (weir.Limit, bool) {
	rate, ok := exactRate(perSecond)
	over := s.WarmUp * 1e3
	if s.Kind == "bursty" {
		over = s.Burst * 1e9
	}
	d := time.Duration(over)
	if !ok || float64(d) != over {
		return nil, false
	}
	if s.Kind == "bursty" {
		return weir.Bursty{Rate: rate, Over: d}, d.Seconds() == s.Burst
	}
	limit := weir.WarmUp{Rate: rate, Over: d, Cold: s.Cold}
	return limit, limit.Validate() == nil
}

// exactRate finds a count and seconds whose quotient is exactly perSecond.
func exactRate(perSecond float64) (weir.Rate, bool) {
	for seconds := 1.0; seconds <= 1000; seconds++ {
		count := math.Round(perSecond * seconds)
		if count >= 1 && count/seconds == perSecond {
			rate := weir.Per(int64(count), time.Duration(seconds)*time.Second)
			return rate, weir.FixedWindow{Rate: rate}.Validate() == nil
		}
	}
	return weir.Rate{}, false
}

// play runs the operations at their times and counts them.
func (s *guavaLine) play(t *testing.T, id string, limit weir.Limit) (ops int) {
	lim := mustNew(t, limit)
	defer lim.Close()
	start := time.Now()
	for i, op := range s.Ops {
		if op.Error != "" {
			continue // Guava's own argument errors
		}
		if op.T > math.MaxInt64/4000 || op.Wait > math.MaxInt64/4000 {
			return ops
		}
		time.Sleep(time.Until(start.Add(time.Duration(op.T) * time.Microsecond)))
		synctest.Wait()
		if op.Op == "setRate" {
			next, ok := s.limit(op.Rate)
			if !ok || lim.Waiting() > 0 || lim.SetLimit(next) != nil {
				return ops
			}
			ops++
			continue
		}
		most := weir.Never
		if op.Op == "try" {
			most = time.Duration(min(max(op.Timeout, 0), math.MaxInt64/4000)) * time.Microsecond
		}
		asked := time.Now()
		go func() {
			err := lim.WaitMax(t.Context(), op.N, most)
			switch slept := time.Since(asked); {
			case errors.Is(err, weir.ErrClosed):
			case op.Op == "try" && !op.OK:
				if !errors.Is(err, weir.ErrWait) {
					t.Errorf("%s op %d: tryAcquire(%d, %d µs) gave %v after %v, want a refusal", id, i, op.N, op.Timeout, err, slept)
				}
			case err != nil || slept != time.Duration(op.Wait)*time.Microsecond:
				t.Errorf("%s op %d: %s(%d) at %d µs slept %v with error %v, want %d µs", id, i, op.Op, op.N, op.T, slept, err, op.Wait)
			}
		}()
		synctest.Wait()
		ops++
	}
	time.Sleep(time.Duration(math.MaxInt64 / 8)) // until all callers have returned
	synctest.Wait()
	return ops
}
