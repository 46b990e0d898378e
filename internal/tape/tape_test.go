package tape_test

import (
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
)

// Limits on a tape decide as limits of a clock that stands at each event, also those that stand alone. Events of a key are in
// order; after Forget those of the next key begin anywhere.
func TestATapeDecidesAtTheInstantOfEachEvent(t *testing.T) {
	for _, limit := range []weir.Limit{weir.TokenBucket{Rate: weir.PerSecond(1)}, weir.FixedWindow{Rate: weir.PerSecond(1)}, weir.Bursty{Rate: weir.PerSecond(1)}} {
		l, err := tape.Of(limit)
		if err != nil {
			t.Fatal(err)
		}
		const second = int64(time.Second)
		for i, e := range []struct {
			at      int64
			key     string
			forgets bool
			want    bool
		}{
			{10 * second, "a", false, true},
			{10*second + 1, "a", false, false},
			{9 * second, "a", false, false}, // late: with the one before
			{12 * second, "a", true, true},
			{-5 * second, "b", false, true}, // another key, from its beginning
			{-5 * second, "b", false, false},
			{-3 * second, "b", false, true},
		} {
			asked, err := l.Peek(e.at, e.key, 1)
			if err != nil {
				t.Fatal(err)
			}
			d, err := l.Take(e.at, e.key, 1)
			if err != nil || d.Allowed != e.want || asked.Allowed != e.want && !weir.Describe(limit).Owes {
				t.Errorf("%s, event %d: peek %t, take %t, want %t (%v)", limit, i, asked.Allowed, d.Allowed, e.want, err)
			}
			if e.forgets {
				if err := l.Forget(e.key); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if _, err := tape.Of(weir.Bursty{Rate: weir.PerSecond(1)}, weir.Unlimited{}); err == nil {
		t.Error("a limit that stands alone was combined")
	}
}
