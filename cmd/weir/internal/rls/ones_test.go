package rls

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// The log warns once of a rule that charges after the work if its first costs were all of one hit, as when Envoy ignores hits_addend.
// Another cost in between shows that costs come, and questions are no costs.
func TestARuleThatHasOnlySeenCostsOfOneIsNamedOnce(t *testing.T) {
	question, cost := `"hitsAddend":0`, `"hitsAddend":2`
	for _, c := range []struct {
		name, user string
		times      int
		between    string // in the middle of the calls of one hit
		want       int
	}{
		{"as route has it", "user=alice", 3 * manyOnes, "", 1},
		{"a shadow", "trial=a", 3 * manyOnes, "", 1},
		{"a rule with a candidate", "plan=a", 3 * manyOnes, "", 1},
		{"not yet", "user=alice", manyOnes - 1, "", 0},
		{"a cost", "user=alice", 3 * manyOnes, cost, 0},
		{"a question", "user=alice", 3 * manyOnes, question, 1},
		{"another rule", "path=/", 3 * manyOnes, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			s, _ := newServer(t, tokens, func(o *setup) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			tell := func(call string) {
				if _, err := s.ShouldRateLimit(t.Context(), asked(t, call)); err != nil {
					t.Fatal(err)
				}
			}
			for i := range c.times {
				if i == manyOnes/2 && c.between != "" {
					tell(callOf(entries(c.user, c.between)))
				}
				tell(callOf(entries(c.user)))
			}
			if got := strings.Count(log.String(), "typed_per_filter_config"); got != c.want {
				t.Errorf("the log warns %d times, want %d:\n%s", got, c.want, log.String())
			}
		})
	}
}
