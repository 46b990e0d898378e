package wire

import (
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/stored"
)

// A reply whose flag can be read says whether the script has written, although its rest makes no sense.
func TestReplyThatCannotBeReadTellsWhatItsFlagSays(t *testing.T) {
	for _, tt := range []struct {
		what             string
		op               Op
		admitted, denied bool // the limit counts denied attempts
		short            bool
		want             weir.Counted
	}{
		{"an admitted take", OpTake, true, false, false, weir.CountedYes},
		{"a refused take", OpTake, false, false, false, weir.CountedNo},
		{"a refused take of a log that counts denied attempts", OpTake, false, true, false, weir.CountedYes},
		{"a record", OpRecord, false, false, false, weir.CountedYes},
		{"a peek", OpPeek, true, false, false, weir.CountedNo},
		{"a reply that ends too early", OpTake, true, false, true, weir.CountedUnknown},
	} {
		d := Decision{Op: tt.op, Admitted: tt.admitted, Parts: []Part{{Limit: &stored.Limit{Denied: tt.denied}}}}
		if got := fault.Of(d.misread(tt.short)).Counted; got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.what, got, tt.want)
		}
	}
}
