package limittest

import (
	"time"

	"github.com/weirflow/weir"
)

// firstWindows tests windows that begin with their first use: which calls begin one, which do not, and which end it.
func firstWindows(f *fixture) {
	const period = 100 * time.Second
	rule := f.rule("first", weir.FirstWindow{Rate: weir.Per(5, period)})
	ends := func(what, key string, left time.Duration, remaining int64) {
		f.Helper()
		if d := f.peek(rule.For(key, 0)); d.ResetAfter != left || d.Remaining != remaining {
			f.Errorf("%s: %v until the window ends, with %d left; want %v and %d", what, d.ResetAfter, d.Remaining, left, remaining)
		}
	}
	f.take(rule.For("a", 6))
	ends("a refusal begins no window", "a", 0, 5)
	f.record(rule.For("a", 7))
	ends("a record begins one", "a", period, 0)
	f.clock.advance(period / 4)
	f.take(rule.For("a", 1))
	ends("a refusal does not extend it", "a", 3*period/4, 0)
	f.giveBack(rule.For("a", 6))
	ends("of 7 units 6 came back", "a", 3*period/4, 4)
	f.giveBack(rule.For("a", 2))
	ends("without units the window ends", "a", 0, 5)
	f.take(rule.For("a", 1))
	ends("the next unit begins another", "a", period, 4)

	first := f.reserve(rule.For("b", 2))
	f.clock.advance(period / 2)
	second := f.reserve(rule.For("b", 2))
	f.cancel(first)
	ends("the window stays when its first units come back", "b", period/2, 3)
	f.cancel(second)
	ends("all came back", "b", 0, 5)

	old := f.reserve(rule.For("c", 2))
	f.clock.advance(period)
	ends("a window is over after its period", "c", 0, 5)
	f.take(rule.For("c", 4))
	f.cancel(old)
	ends("units of an earlier window do not come back", "c", period, 1)
	f.giveBack(rule.For("c", 1))
	ends("units given back count in the open window", "c", period, 2)
}
