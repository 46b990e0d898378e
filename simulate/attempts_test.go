package simulate

import (
	"reflect"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/tape"
)

// Each attempt is told as it is answered, of one limit after the other, also those of clients that come back.
func TestEachAttemptIsTold(t *testing.T) {
	p, err := ParsePattern("storm 3 at 1s retry every 500ms")
	if err != nil {
		t.Fatal(err)
	}
	var got [][]any
	scenario := Scenario{Length: 3 * time.Second, Attempts: func(a Attempt) {
		if want := time.Unix(0, tape.Start).Add(a.After).UTC(); !a.At.Equal(want) {
			t.Errorf("an attempt at %v, %v after the start: want %v", a.At, a.After, want)
		}
		got = append(got, []any{a.Limit, a.After, a.Client, a.Cost, a.Retries, a.Decision.Allowed, a.Decision.RetryAfter})
	}}
	if _, err := p.Compare([]string{"fixed window 2/1s", "deny all"}, scenario); err != nil {
		t.Fatal(err)
	}
	const s, half = time.Second, time.Second / 2
	want := [][]any{
		{0, s, 0, int64(1), 0, true, time.Duration(0)}, {0, s, 1, int64(1), 0, true, time.Duration(0)}, {0, s, 2, int64(1), 0, false, s},
		{0, s + half, 2, int64(1), 1, false, half}, {0, 2 * s, 2, int64(1), 2, true, time.Duration(0)},
	}
	if !reflect.DeepEqual(got[:len(want)], want) {
		t.Errorf("told of the first limit\n%v, want\n%v", got[:len(want)], want)
	}
	if rest := got[len(want):]; len(rest) != 3*4 || rest[0][0] != 1 {
		t.Errorf("told of a limit that refuses all: %v, want three attempts at 1, 1.5, 2 and 2.5 s", rest)
	}
}
