package front

import (
	"testing"

	"github.com/weirflow/weir"
)

func TestWhySaysWhatTheLimitSays(t *testing.T) {
	for _, tt := range []struct {
		d     weir.Decision
		never bool
		want  string
	}{
		{weir.Decision{Limit: 300, Cause: weir.ByCount}, false, `the limit "c" is used up`},
		{weir.Decision{Limit: 300, Remaining: 101, Cause: weir.ByCount}, false, `the cost is more than the 101 left of the limit "c"`},
		{weir.Decision{Limit: 300, Remaining: 300}, true, `the cost is more than the limit "c" ever admits`},
		{weir.Decision{}, true, `the limit "c" admits nothing`},
		{weir.Decision{Limit: 5, Cause: weir.ByGap}, false, `the limit "c" needs a pause between requests`},
	} {
		if got := Why("c", &tt.d, tt.never); got != tt.want {
			t.Errorf("%+v, never %v: got %s, want %s", tt.d, tt.never, got, tt.want)
		}
	}
}
