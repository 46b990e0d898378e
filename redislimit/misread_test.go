package redislimit

import (
	"testing"

	"github.com/weirflow/weir"
)

// A reply whose flag can be read says whether the script has written, although its rest makes no sense.
func TestReplyThatCannotBeReadTellsWhatItsFlagSays(t *testing.T) {
	for _, tt := range []struct {
		what             string
		op               op
		admitted, denied bool // the limit counts denied attempts
		short            bool
		want             weir.Counted
	}{
		{"an admitted take", opTake, true, false, false, weir.CountedYes},
		{"a refused take", opTake, false, false, false, weir.CountedNo},
		{"a refused take of a log that counts denied attempts", opTake, false, true, false, weir.CountedYes},
		{"a record", opRecord, false, false, false, weir.CountedYes},
		{"a peek", opPeek, true, false, false, weir.CountedNo},
		{"a reply that ends too early", opTake, true, false, true, weir.CountedUnknown},
	} {
		d := decision{op: tt.op, admitted: tt.admitted, parts: []part{{limit: &limit{denied: tt.denied}}}}
		if got := weir.WasCounted(d.misread(tt.short)); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.what, got, tt.want)
		}
	}
}
