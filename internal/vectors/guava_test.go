package vectors_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/vectors"
)

// guavaScenario is one line of guava.jsonl. Times are whole microseconds.
type guavaScenario struct {
	Kind     string
	Rate     float64
	Seconds  float64 `json:"max_burst_seconds"`
	WarmUpUs float64 `json:"warmup_us"`
	Cold     float64 `json:"cold_factor"`
	Ops      []guavaOp
}

type guavaOp struct {
	Op      string
	T       int64
	N       int64
	Timeout int64
	Rate    float64

	Wait    int64
	OK      bool
	GetRate float64 // internal/algorithm compares it: no public API has it
	Stored  *float64
	Error   string
}

func (s guavaScenario) limit(rate float64) *algorithm.Guava {
	if s.Kind == "bursty" {
		return algorithm.NewBursty(rate, s.Seconds)
	}
	return algorithm.NewWarmUp(rate, s.WarmUpUs, s.Cold)
}

func TestBurstyAndWarmUpPassGuavasVectors(t *testing.T) {
	played := 0
	for _, line := range dialect(t, "guava") {
		var s guavaScenario
		if err := json.Unmarshal(line.Line, &s); err != nil {
			t.Fatalf("%s: %v", line.ID, err)
		}
		if s.Kind == "warmup" && s.WarmUpUs == 0 {
			t.Logf("%s not played: a warm-up of 0 is refused", line.ID)
			continue
		}
		subject := &guavaSubject{scenario: s, limit: s.limit(s.Rate)}
		subject.state = subject.limit.Start(0)
		for i, op := range s.Ops {
			if err := subject.plays(op); err != nil {
				t.Errorf("%s op %d: %s at %d µs: %v", line.ID, i, op.Op, op.T, err)
			}
		}
		played++
	}
	t.Logf("%d scenarios played", played)
}

// dialect returns the lines of one dialect and fails the test if there are none.
func dialect(t *testing.T, name string) (lines []vectors.Dialect) {
	t.Helper()
	for _, file := range vectors.Files(t) {
		for _, d := range file.Dialects {
			if d.Algorithm == name {
				lines = append(lines, d)
			}
		}
	}
	if len(lines) == 0 {
		t.Fatalf("no vectors of %s", name)
	}
	return lines
}

// guavaSubject is a limiter created at time 0.
type guavaSubject struct {
	scenario guavaScenario
	limit    *algorithm.Guava
	state    algorithm.State
}

const microsecond = 1000

// plays runs one operation and describes each difference from Guava's answer.
func (g *guavaSubject) plays(op guavaOp) error {
	var problem error
	switch {
	case op.Op == "setRate" && op.Error == "" && op.Rate > 0:
		to := g.scenario.limit(op.Rate)
		g.state, g.limit = to.Carry(g.limit, g.state, op.T*microsecond), to
	case op.Op == "acquire" && op.Error == "" && op.N >= 1:
		problem = g.acquires(op)
	case op.Op == "try" && op.Error == "" && op.N >= 1:
		ok := g.wait(op) <= max(op.Timeout, 0)
		problem = same("ok", ok, op.OK)
		if ok && op.OK {
			problem = g.acquires(op)
		}
	case op.Error != "invalid" || op.N >= 1 || op.Rate > 0:
		return fmt.Errorf("cannot be run: %+v", op)
	}
	if op.Stored != nil {
		problem = errors.Join(problem, same("stored", g.limit.Stored(g.state), *op.Stored))
	}
	return problem
}

// wait returns the time until the next request may proceed, in microseconds.
func (g *guavaSubject) wait(op guavaOp) int64 { return max(g.state.B-op.T, 0) }

func (g *guavaSubject) acquires(op guavaOp) error {
	now, wait := op.T*microsecond, g.wait(op)
	nanoseconds := int64(math.MaxInt64)
	if wait <= math.MaxInt64/microsecond {
		nanoseconds = wait * microsecond
	}
	planned := g.limit.Wait(g.state, now, op.N)
	g.state = g.limit.Take(g.state, now, op.N)
	return errors.Join(same("wait", wait, op.Wait), same("wait in ns", planned, nanoseconds))
}

func same[T comparable](what string, got, want T) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("%s: got %v, want %v", what, got, want)
}
