package plain

import "testing"

// A share that is not nothing never looks like nothing, and one that is not all never looks like all.
func TestAShareIsNothingOrAllOnlyIfItIs(t *testing.T) {
	for _, test := range []struct {
		part, whole int64
		want        string
	}{
		{0, 0, ""}, {0, 7, "0.00%"}, {7, 7, "100.00%"}, {1, 3, "33.33%"}, {1, 1_000_000, "<0.01%"}, {1, 20_001, "<0.01%"}, {1, 10_000, "0.01%"},
		{999_999, 1_000_000, ">99.99%"}, {9_999, 10_000, "99.99%"},
	} {
		if got := Percent(test.part, test.whole); got != test.want {
			t.Errorf("%d of %d is %q, want %q", test.part, test.whole, got, test.want)
		}
	}
}
