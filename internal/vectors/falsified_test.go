package vectors_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/vectors"
)

// TestFalsifiedVectorsFail changes one expected value at a time. The player must report that field.
func TestFalsifiedVectorsFail(t *testing.T) {
	for _, file := range vectors.Files(t) {
		falsified := 0
		for _, s := range file.Scenarios {
			if subject, err := newFunctions(s); err != nil || vectors.Play(s, subject) != nil {
				continue // out of bounds, or not for engines
			}
			falsified += falsifyEach(t, s)
		}
		if len(file.Scenarios) > 0 && falsified == 0 {
			t.Errorf("%s: no scenario was falsified", file.Name)
		}
	}
}

func falsifyEach(t *testing.T, s vectors.Scenario) (count int) {
	t.Helper()
	for i := range s.Ops {
		if s.Ops[i].Verb == vectors.ChangeLimit {
			continue
		}
		for field, falsify := range falsifications {
			lie := upTo(s, i)
			if !falsify(&lie.Ops[i].Want) {
				continue
			}
			count++
			subject, err := newFunctions(lie)
			if err != nil {
				t.Fatalf("%s: %v", s.ID, err)
			}
			err = vectors.Play(lie, subject)
			if err == nil || !strings.Contains(err.Error(), field+":") {
				t.Errorf("%s op %d with a falsified %s: got %v, want a complaint about %s", s.ID, i, field, err, field)
			}
		}
	}
	return count
}

// falsifications change one field of the expected answer, if it has that field.
var falsifications = map[string]func(*vectors.Want) bool{
	"allowed": func(w *vectors.Want) bool {
		if w.Allowed != nil {
			*w.Allowed = !*w.Allowed
		}
		return w.Allowed != nil
	},
	"limit":       func(w *vectors.Want) bool { return addOne(w.Limit) },
	"remaining":   func(w *vectors.Want) bool { return addOne(w.Remaining) },
	"retry_after": func(w *vectors.Want) bool { return addOne(w.RetryAfter) },
	"reset_after": func(w *vectors.Want) bool { return addOne(w.ResetAfter) },
	"delay":       func(w *vectors.Want) bool { return addOne(w.Delay) },
	"error": func(w *vectors.Want) bool {
		w.Error += "?"
		return true
	},
}

func addOne(n *int64) bool {
	if n == nil {
		return false
	}
	*n++ // the longest duration wraps, which is equally wrong
	return true
}

// upTo returns the scenario up to its i-th operation. Its expected answer is a copy.
func upTo(s vectors.Scenario, i int) vectors.Scenario {
	s.Ops = slices.Clone(s.Ops[:i+1])
	want := &s.Ops[i].Want
	if want.Allowed != nil {
		want.Allowed = new(*want.Allowed)
	}
	for _, field := range []**int64{&want.Limit, &want.Remaining, &want.RetryAfter, &want.ResetAfter, &want.Delay} {
		if *field != nil {
			*field = new(**field)
		}
	}
	return s
}
