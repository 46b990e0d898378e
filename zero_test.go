package weir_test

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// argument is a value of a type that a method takes.
func argument(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerDay(1)})
	for _, value := range []any{int64(1), 1, time.Second, time.Now(), weir.Turn{Cost: 1}, &bytes.Buffer{}, t.Context(),
		weir.TokenBucket{Rate: weir.PerDay(1)}, []weir.Request{rule.For("k", 1)}, rule.For("k", 1), make([]weir.Result, 1), []*weir.Rule{rule},
		weir.Call{Requests: []weir.Request{rule.For("k", 1)}}, weir.Calls(weir.OpTake, rule.For("k", 1)), func([]weir.Request) bool { return false }} {
		if v := reflect.ValueOf(value); v.Type().AssignableTo(of) {
			return v
		}
	}
	t.Fatalf("no argument for %v: add one", of)
	return reflect.Value{}
}

// Every method of a zero value refuses, and its error says how to make a value.
func TestZeroValuesRefuse(t *testing.T) {
	fine := map[string]bool{"Close": true, "Refresh": true, "Reset": true, "For": true} // that tell nothing
	for _, zero := range []any{&weir.Limiter{}, &weir.Keyed[int]{}, &weir.Memory{}} {
		v := reflect.ValueOf(zero)
		for i := range v.NumMethod() {
			method, name := v.Method(i), v.Type().Method(i).Name
			var args []reflect.Value
			for in := range method.Type().Ins() {
				args = append(args, argument(t, in))
			}
			call := method.Call
			if method.Type().IsVariadic() {
				call = method.CallSlice
			}
			results := call(args)
			for _, result := range results {
				if refused, isFine := refusal(result.Interface()), fine[name]; !refused && !isFine {
					t.Errorf("%T: %s returned %+v, want a refusal", zero, name, result)
				}
			}
		}
	}
	if err := new(weir.Keyed[int]).For(1).WaitTurn(t.Context(), weir.Turn{Cost: 1}); !refusal(err) {
		t.Errorf("a key of a zero Keyed: %v", err)
	}
	var key weir.KeyLimiter[int]
	if err := key.WaitTurn(t.Context(), weir.Turn{Cost: 1}); !refusal(err) {
		t.Errorf("a zero KeyLimiter: %v", err)
	}
	if d := key.Return(1); !refusal(d) {
		t.Errorf("a zero KeyLimiter: Return returned %+v, want a refusal", d)
	}
}

// refusal reports whether a method of a zero value returned an empty value, a final refusal, or an error that says
// how to make one.
func refusal(result any) bool {
	switch r := result.(type) {
	case error:
		return strings.Contains(r.Error(), "make it with weir.New")
	case weir.Decision:
		return r == weir.Decision{} || r == weir.Decision{RetryAfter: weir.Never}
	case *weir.Reservation:
		return r == nil || !r.Decision.Allowed
	case weir.MemoryStats:
		return r.Keys == 0
	case []weir.KeyCount:
		return len(r) == 0
	}
	return result == nil || reflect.ValueOf(result).IsZero()
}

// The results of an Each are errors, too.
func TestAZeroMemoryRefusesEachRequest(t *testing.T) {
	rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerDay(1)})
	results := make([]weir.Result, 1)
	err := new(weir.Memory).Each(context.Background(), weir.Calls(weir.OpTake, rule.For("k", 1)), results)
	if err != nil || results[0].Err == nil || results[0].Decision.Allowed {
		t.Errorf("Each of a zero Memory: %+v and %v, want an error for the request", results[0], err)
	}
}
