package rls

import (
	"fmt"
	"testing"
	"time"
)

// The limit, what is left and the reset of a status belong together, for refusals, too.
func TestTheResetOfAStatusIsThatOfItsLimit(t *testing.T) {
	s, now := newServer(t, `
rules:
  - {name: two, match: {descriptor.k: two}, limit: [token bucket 5/s, fixed window 6/d]}
  - {name: alike, match: {descriptor.k: alike}, limit: [fixed window 2/h, fixed window 2/m]}
  - {name: first, match: {descriptor.k: both}, limit: fixed window 1/m}
  - {name: second, match: {descriptor.k: both}, limit: fixed window 3/h}
`, nil)
	*now = now.Truncate(24 * time.Hour)
	for _, step := range []struct {
		key   string
		after time.Duration
		want  string
	}{
		{"two", 0, "OK 5/SECOND 4 1"},
		{"two", 0, "OK 5/SECOND 3 1"},
		{"two", 0, "OK 5/SECOND 2 1"},
		{"two", 0, "OK 5/SECOND 1 1"},
		{"two", 0, "OK 5/SECOND 0 1"},
		{"two", 0, "OVER_LIMIT 5/SECOND 0 1"},
		{"two", time.Second, "OK 6/DAY 0 86399"},
		{"two", 0, "OVER_LIMIT 6/DAY 0 86399"},
		{"alike", 0, "OK 2/HOUR 1 3599"},
		{"both", 0, "OK 1/MINUTE 0 59"},
		{"both", time.Minute, "OK 1/MINUTE 0 59"},
		{"both", time.Minute, "OK 1/MINUTE 0 59"},
		{"both", 0, "OVER_LIMIT 3/HOUR 0 3479"}, // both are exhausted
	} {
		*now = now.Add(step.after)
		a, err := s.ShouldRateLimit(t.Context(), asked(t, callOf(entries("k="+step.key))))
		if err != nil {
			t.Fatal(err)
		}
		d := a.Statuses[0]
		got := fmt.Sprintf("%s %d/%s %d %d", d.Code, d.CurrentLimit.GetRequestsPerUnit(), d.CurrentLimit.GetUnit(), d.LimitRemaining, d.DurationUntilReset.GetSeconds())
		if got != step.want {
			t.Errorf("%s: got %s, want %s", step.key, got, step.want)
		}
	}
}
