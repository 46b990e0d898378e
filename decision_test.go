package weir_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestARefusalSaysWhetherTheCountOrTheGapRefuses(t *testing.T) {
	limit := weir.SlidingLog{Rate: weir.Per(3, 10*time.Second), Gap: time.Second}
	start := time.Unix(1_700_000_000, 0)
	limiter, err := weir.New(limit)
	keyed, also := weir.NewKeyed[string](limit)
	if err != nil || also != nil {
		t.Fatal(err, also)
	}
	for name, take := range map[string]func(at time.Time, n int64) weir.Decision{
		"Limiter": limiter.TakeAt,
		"Keyed":   func(at time.Time, n int64) weir.Decision { return keyed.TakeAt(at, "k", n) },
	} {
		for i, step := range []struct {
			after time.Duration
			cost  int64
			want  weir.Cause
		}{
			{0, 1, 0},
			{500 * time.Millisecond, 1, weir.ByGap},
			{500 * time.Millisecond, 3, weir.ByCount}, // the gap ends before 3 units are free
			{500 * time.Millisecond, 4, weir.ByCount},
			{time.Second, 2, 0},
			{1500 * time.Millisecond, 1, weir.ByCount},
			{9999 * time.Millisecond, 1, weir.ByCount},
			{10 * time.Second, 1, 0},
		} {
			if d := take(start.Add(step.after), step.cost); d.Cause != step.want || d.Allowed != (step.want == 0) || d.RefusedBy != 0 {
				t.Errorf("%s, step %d, %d units after %v: got %+v, want cause %q", name, i, step.cost, step.after, d, step.want)
			}
		}
	}
}

func TestACauseIsItsTextInJSON(t *testing.T) {
	for cause, want := range map[weir.Cause]string{0: `{"c":""}`, weir.ByCount: `{"c":"count"}`, weir.ByGap: `{"c":"gap"}`} {
		type cell struct {
			Cause weir.Cause `json:"c"`
		}
		var back cell
		text, err := json.Marshal(cell{cause})
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || string(text) != want || back.Cause != cause {
			t.Errorf("%d: got %s, read back as %d, and error %v, want %s", cause, text, back.Cause, err, want)
		}
	}
	var c weir.Cause
	if err := c.UnmarshalText([]byte("gaps")); err == nil {
		t.Errorf("the text gaps is read as %q, want an error", c)
	}
}
