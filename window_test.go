package weir_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// hits are those of one key, as the fixed window of Python's limits answered them: see testdata/firstwindow/record.py. A hit is the
// time since the first one, whether it was admitted, what remains, and the time until the window ends.
type hits struct {
	Limit   int64      `json:"limit"`
	Seconds int64      `json:"seconds"`
	T0      int64      `json:"t0"`
	Ops     [][4]int64 `json:"ops"`
}

// eighths converts their times.
func eighths(n int64) time.Duration { return time.Duration(n) * time.Second / 8 }

// equals reports whether a limit answers each hit in the same way.
func (h *hits) equals(t *testing.T, limit weir.Limit) bool {
	limiter, began := mustLimit(t, limit), time.Unix(0, 0).Add(eighths(h.T0))
	for _, op := range h.Ops {
		d := limiter.TakeAt(began.Add(eighths(op[0])), 1)
		if d.Allowed != (op[1] == 1) || d.Remaining != op[2] || d.ResetAfter != eighths(op[3]) || !d.Allowed && d.RetryAfter != d.ResetAfter {
			return false
		}
	}
	return true
}

func TestAFirstWindowAnswersLikePythonsLimits(t *testing.T) {
	file, err := os.ReadFile("testdata/firstwindow/limits-5.8.0.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	scenarios, otherwise := 0, 0
	for line := range bytes.Lines(file) {
		var h hits
		if err := json.Unmarshal(line, &h); err != nil {
			t.Fatal(err)
		}
		scenarios++
		rate := weir.Per(h.Limit, time.Duration(h.Seconds)*time.Second)
		if !h.equals(t, weir.FirstWindow{Rate: rate}) {
			t.Errorf("scenario %d of %s: the answers differ", scenarios, rate)
		}
		if !h.equals(t, weir.FixedWindow{Rate: rate}) {
			otherwise++
		}
	}
	t.Logf("a fixed window answers otherwise in %d of %d scenarios", otherwise, scenarios)
	if scenarios != 200 || otherwise < 150 {
		t.Errorf("of %d scenarios %d tell a fixed window apart, want nearly all of 200", scenarios, otherwise)
	}
}
