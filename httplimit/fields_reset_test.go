package httplimit_test

import (
	"net/http"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
)

// The field RateLimit says of one limit what is left and when all of it is back.
func TestTheResetOfTheFieldsIsThatOfTheirLimit(t *testing.T) {
	const past = 7*3600 + 600
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return past * 1e9 }})
	two, err := weir.NewRule("two", weir.FixedWindow{Rate: weir.PerHour(2)}, weir.FixedWindow{Rate: weir.PerDay(3)})
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	d, err := engine.Take(t.Context(), two.For("k", 1))
	httplimit.AddFields(h, httplimit.Draft11, d, nil, two.For("k", 1))
	if got, want := h.Get("RateLimit"), `"two-1";r=1;t=3000`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
