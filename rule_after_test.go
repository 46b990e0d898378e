package weir_test

import (
	"errors"
	"testing"

	"github.com/weirflow/weir"
)

func TestARuleThatChargesAfterSharesTheStatesOfTheRule(t *testing.T) {
	rule, err := weir.ParseRule("tokens=100/h and quota 1000/month")
	if err != nil {
		t.Fatal(err)
	}
	after, err := rule.ChargeAfter()
	if err != nil || !after.ChargesAfter() || rule.ChargesAfter() || after.String() != rule.String() {
		t.Fatalf("got %v, %v", after, err)
	}
	engine := weir.NewMemory(weir.MemoryOptions{})
	if d, err := engine.Record(t.Context(), after.For("k", 250)); err != nil || d.Allowed {
		t.Errorf("got %+v, %v, want a record that did not fit", d, err)
	}
	if d, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil || d.Allowed || d.Remaining != 0 {
		t.Errorf("got %+v, %v, want a refusal", d, err)
	}
}

func TestSlotsAreNotChargedAfter(t *testing.T) {
	for _, text := range []string{"r=concurrency 5", "r=100/h and concurrency 5"} {
		rule, err := weir.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = rule.ChargeAfter()
		refused, ok := errors.AsType[*weir.LimitError](err)
		if want := `weir: rule "r": charge cannot be after the work, because concurrency 5 holds slots during the work; give the slots a rule of their own`; !ok || refused.Code != weir.CodeHeld || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
