// Package vectors plays scripts of operations with the exact answer to each, on anything that decides by limits: pure
// functions, a Limiter, a Keyed, an engine. files/README.md explains their format. WEIR_VECTORS names another folder of
// the same format.
package vectors

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

// Run plays all vectors, with one subtest for each file. binds returns the reason a scenario does not apply to
// the subject under test, or "". fresh returns the subject; it may refuse limits outside the bounds of package weir
// with a *weir.LimitError. Run logs each scenario that it does not play, with the reason.
func Run(t *testing.T, binds func(Scenario) string, fresh func(Scenario) (Subject, error)) {
	for _, file := range Files(t) {
		t.Run(file.Name, func(t *testing.T) {
			runFile(t, file, binds, fresh)
		})
	}
}

func runFile(t *testing.T, file File, binds func(Scenario) string, fresh func(Scenario) (Subject, error)) {
	played := 0
	unplayed := map[string][]string{} // scenarios by reason
	for _, d := range file.Dialects {
		reason := fmt.Sprintf("a dialect, which binds only %s", dialects[d.Algorithm])
		unplayed[reason] = append(unplayed[reason], d.ID)
	}
	for _, s := range file.Scenarios {
		reason := bindsNoTokenBucket(s)
		if reason == "" {
			reason = binds(s)
		}
		if reason == "" {
			reason = play(t, s, fresh)
		}
		if reason == "" {
			played++
			continue
		}
		unplayed[reason] = append(unplayed[reason], s.ID)
	}
	t.Logf("%s: %d of %d scenarios played", file.Name, played, len(file.Scenarios)+len(file.Dialects))
	for _, reason := range slices.Sorted(maps.Keys(unplayed)) {
		ids := unplayed[reason]
		t.Logf("%s: %d not played, %s: %s", file.Name, len(ids), reason, strings.Join(ids, " "))
	}
}

// bindsNoTokenBucket excludes scenarios of token_bucket where time runs backwards: weir.TokenBucket behaves like the
// vectors' gcra then.
func bindsNoTokenBucket(s Scenario) string {
	if slices.Contains(s.Params.algorithms(), "token_bucket") && s.Tagged("backwards") {
		return "token_bucket with time running backwards does not bind TokenBucket"
	}
	return ""
}

// play plays a scenario. It returns the reason if the subject refused the scenario's limits, and otherwise "".
func play(t *testing.T, s Scenario, fresh func(Scenario) (Subject, error)) (refused string) {
	t.Helper()
	subject, err := fresh(s)
	if err == nil {
		if err := Play(s, subject); err != nil {
			t.Error(err)
		}
		return ""
	}
	reason, legal := s.refusal(err)
	if !legal {
		t.Errorf("%s: limits refused: got %v; want a *weir.LimitError, and only for limits out of bounds", s.ID, err)
	}
	return "refused: " + reason
}

// refusal returns why limits were refused, and whether that refusal is legal.
func (s Scenario) refusal(err error) (reason string, legal bool) {
	var limitError *weir.LimitError
	if !errors.As(err, &limitError) {
		return "", false
	}
	if in := (RefusedInTicks{}); errors.As(err, &in) {
		return limitError.Field + " is out of the engine's bounds in ticks", true
	}
	reason = s.Params.outOfBounds()
	return reason, reason != ""
}

// RefusedInTicks marks a refusal of limits that are out of bounds only because they are read in ticks.
type RefusedInTicks struct{ Err error }

func (r RefusedInTicks) Error() string { return r.Err.Error() }
func (r RefusedInTicks) Unwrap() error { return r.Err }
