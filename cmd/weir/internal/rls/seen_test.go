package rls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// telling notes what a service tells its metrics.
func telling(list *[]string, engine weir.Engine) func(*setup) {
	return func(o *setup) {
		if engine != nil {
			o.desk.Engine = engine
		}
		o.desk.Judged = func(_ context.Context, rule string, allowed bool, reason rules.Reason) {
			*list = append(*list, fmt.Sprintf("%q %v by %s", rule, allowed, reason))
		}
		o.desk.Compared = func(name string, inForce, beside weir.Decision, err error) {
			*list = append(*list, fmt.Sprintf("%s: %v beside %v, %v", name, beside.Allowed, inForce.Allowed, err))
		}
	}
}

// settledSummary returns the summary of an answer, once everything about it is told.
func settledSummary(t *testing.T, s *Server, call string) string {
	defer synctest.Wait()
	return summary(t, s, call)
}

func TestDecisionsWithoutTheEngineAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = `rules:
  - {name: banned, match: {descriptor.user: mallory}, deny: true}
  - {name: office, match: {descriptor.user: boss}, unlimited: true}
  - {name: tenant, match: {descriptor.user: eve}, key: descriptor.tenant, limit: 5/m, missing: refuse}
  - {name: user, match: {descriptor.user: ann}, key: descriptor.user, limit: 5/m}`
		var got []string
		s, _ := newServer(t, file, telling(&got, nil))
		for _, c := range []struct {
			descriptor string
			want       []string
		}{
			{entries("user=mallory"), []string{`"banned" false by rule`}},
			{entries("user=boss"), []string{`"office" true by rule`}},
			{entries("user=eve"), []string{`"tenant" false by missing`}},
			{entries("user=nobody"), []string{`"" true by default`}},
			{entries("user=ann"), nil},                                                                                     // by the engine, which counts
			{entries("user=boss", `"hitsAddend":"0"`), nil},                                                                // asks and takes nothing
			{entries("user=mallory", `"isNegativeHits":true`), nil},                                                        // gives back
			{entries("user=boss") + "," + entries("user=nobody"), []string{`"office" true by rule`, `"" true by default`}}, // each on its own
		} {
			got = nil
			if settledSummary(t, s, callOf(c.descriptor)); !slices.Equal(got, c.want) {
				t.Errorf("%s: got %q, want %q", c.descriptor, got, c.want)
			}
		}
	})
}

func TestShadowsAreComparedWithWhatIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = `rules:
  - {name: watched, match: {descriptor.user: "*"}, key: descriptor.user, limit: 1/h, shadow: true}
  - {name: office, match: {descriptor.user: boss}, unlimited: true}
  - {name: ann, match: {descriptor.user: ann}, key: descriptor.user, limit: 2/h, candidate: 1/h}`
		var got []string
		s, _ := newServer(t, file, telling(&got, nil))
		for _, want := range [][]string{
			{"watched: true beside true, <nil>", "ann~candidate: true beside true, <nil>"},
			{"watched: false beside true, <nil>", "ann~candidate: false beside true, <nil>"},
			{"watched: false beside false, <nil>", "ann~candidate: false beside false, <nil>"},
		} {
			got = nil
			if settledSummary(t, s, callOf(entries("user=ann"))); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		got = nil // no rule in force decides on this one, and the shadow does
		settledSummary(t, s, callOf(entries("user=bob")))
		if want := []string{`"" true by default`, "watched: true beside true, <nil>"}; !slices.Equal(got, want) {
			t.Errorf("without a rule in force: got %q, want %q", got, want)
		}
	})
}

func TestAShadowThatFailsChangesNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		broken := weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), func(context.Context, weir.Call, weir.Next) (weir.Answer, error) {
			return weir.Answer{}, errors.New("gone")
		})
		s, _ := newServer(t, `rules: [{name: watched, match: {descriptor.user: "*"}, key: descriptor.user, limit: 1/h, shadow: true}]`, telling(&got, broken))
		if answer := settledSummary(t, s, callOf(entries("user=bob"))); answer[:2] != "OK" {
			t.Errorf("got %s, want it admitted", answer)
		}
		if want := []string{`"" true by default`, "watched: false beside true, gone"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A rule that refuses without the engine refuses questions, too, whatever other rules have left.
func TestAQuestionIsRefusedByARuleThatAsksNoEngine(t *testing.T) {
	s, _ := newServer(t, `rules:
  - {name: user, match: {descriptor.user: eve}, key: descriptor.user, limit: 5/m}
  - {name: tenant, match: {descriptor.user: eve}, key: descriptor.tenant, limit: 5/m, missing: refuse}`, nil)
	if got := summary(t, s, callOf(entries("user=eve", `"hitsAddend":"0"`))); got[:10] != "OVER_LIMIT" {
		t.Errorf("got %s, want OVER_LIMIT", got)
	}
}

// All rules of a call decide together: a question that is refused keeps its neighbours from taking.
func TestAQuestionThatIsRefusedKeepsTheOthersFromTaking(t *testing.T) {
	s, _ := newServer(t, `rules: [{name: user, match: {descriptor.user: "*"}, key: descriptor.user, limit: 1/h}]`, nil)
	for _, c := range []struct{ call, want string }{
		{callOf(entries("user=eve")), "OK"},
		{callOf(entries("user=eve", `"hitsAddend":"0"`) + "," + entries("user=ann")), "OVER_LIMIT"},
		{callOf(entries("user=bob", `"hitsAddend":"0"`) + "," + entries("user=ann")), "OK"}, // ann has taken nothing yet
		{callOf(entries("user=ann")), "OVER_LIMIT"},
	} {
		if got := summary(t, s, c.call); !strings.HasPrefix(got, c.want+" ") {
			t.Errorf("%s: got %s, want %s", c.call, got, c.want)
		}
	}
}
