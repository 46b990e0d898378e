package check

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	explanations "github.com/weirflow/weir/cmd/weir/internal/explain"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/internal/replay"
)

// rated are limits whose worst case the test reaches.
var rated = []string{
	"token bucket 10/s burst 20", "token bucket 10/s burst 1", "token bucket 7/s burst 3", "60/m",
	"leaky bucket 10/s queue 9", "leaky bucket 10/s queue 9 nodelay 3", "leaky bucket 5/s queue 0", "leaky bucket 10/s queue 4 nodelay 9",
	"fixed window 10/s", "fixed window 100/1m", "sliding window 10/s", "sliding window 100/1m",
	"sliding log 10/s", "sliding log 5/10s gap 1s", "sliding log 5/10s gap 4s", "sliding log 10/s count denied", "rate gate 2/s", "cycle 50/500ms",
	"bursty 10/s over 1s", "bursty 5/s over 4s", "warm up 10/s over 2s",
	"nginx limit_req 10/s burst 9 nodelay", "nginx limit_req 10/s burst 9", "nginx limit_req 10/s burst 9 delay 3", "nginx limit_req 5000/s burst 20 nodelay",
}

// An adversary takes all it can from a fresh limit and after a pause, beginning at the start of a period and just
// before its end. It reaches the number that check gives, and never more.
func TestTheWorstCaseIsReachedAndNeverExceeded(t *testing.T) {
	for _, text := range rated {
		limit, err := weir.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		period := int64(weir.Describe(limit).Rate.Period)
		var most int64
		for _, offset := range []int64{0, period - 1, period - int64(time.Millisecond)} {
			for _, pause := range []bool{false, true} {
				most = max(most, greedy(t, limit, period, offset, pause))
			}
		}
		if want := weir.Describe(limit).Worst; most != want {
			t.Errorf("%s: at most %d went ahead within a period, check says %d", text, most, want)
		}
	}
}

// greedy asks until it is refused, a thousand times in each of three periods, and returns the most that went ahead
// within one period.
func greedy(t *testing.T, limit weir.Limit, period, offset int64, pause bool) (most int64) {
	t.Helper()
	start := int64(366*24*time.Hour) / period * period
	now := start
	limiter, err := weir.NewWith(limit, weir.Options{Clock: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	if pause {
		limiter.Take(1)
		start += 100 * period
	}
	now = start + offset
	boundary := (now + period - 1) / period * period
	var starts []int64
	for step := range int64(3000) {
		for d := limiter.Take(1); d.Allowed; d = limiter.Take(1) {
			starts = append(starts, now+int64(d.Delay))
		}
		now = boundary + step*period/1000
	}
	first := 0
	for i, at := range starts {
		for at-starts[first] >= period {
			first++
		}
		most = max(most, int64(i-first+1))
	}
	return most
}

// The sizes are those that an engine reports, and that docs/reference/memory.md gives. Cells take less on 32-bit machines.
func TestCheckPrintsTheMemoryOfAKey(t *testing.T) {
	keys := 100_000
	if testing.Short() {
		keys = 50_000
	}
	for _, test := range []struct {
		text, memory string
		least, most  int
	}{
		{"token bucket 10/h burst 20", "20 to 28 bytes", 20, 28},
		{"token bucket 11/h burst 20", "20 to 28 bytes a key while it is not idle; 29 to 40", 29, 40},
		{"fixed window 100/1h", "20 to 28 bytes", 20, 28},
		{"sliding window 100/1h", "20 to 28 bytes", 20, 28},
		{"sliding log 5/1h", "92 to 112 bytes", 92, 112},
		{"cycle 50/1h", "20 to 28 bytes", 20, 28},
	} {
		limit, err := weir.ParseLimit(test.text)
		if err != nil {
			t.Fatal(err)
		}
		rule, err := weir.NewRule("r", limit)
		if err != nil {
			t.Fatal(err)
		}
		memory := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 1e18 }})
		for i := range keys {
			if _, err := memory.Take(context.Background(), rule.For(fmt.Sprint(i), 1)); err != nil {
				t.Fatal(err)
			}
		}
		if each := memory.Stats().Bytes / keys; each < test.least && strconv.IntSize == 64 || each > test.most {
			t.Errorf("%s: %d bytes a key, want %d to %d", test.text, each, test.least, test.most)
		}
		if got := explanations.Of(limit).Memory; !strings.HasPrefix(got, test.memory) {
			t.Errorf("%s: %q, want %s", test.text, got, test.memory)
		}
	}
	document, err := os.ReadFile("../../../../docs/reference/memory.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []string{"| 20 to 28 |", "| 29 to 40 |", "| 92 to 112, "} {
		if !strings.Contains(string(document), size) {
			t.Errorf("docs/reference/memory.md no longer says %q", size)
		}
	}
}

func TestEveryExampleOfALimitIsExplained(t *testing.T) {
	for _, text := range append(append(rated, cli.RuleLimits...), cli.OneSubjectLimits...) {
		candidate, err := replay.ParseCandidate(text)
		if err != nil {
			t.Fatal(err)
		}
		got := explain(candidate, screen.Screen{})
		if strings.Contains(got, "no bound") != (text == "unlimited") || strings.Contains(got, "\n\n") {
			t.Errorf("%s is explained as:\n%s", text, got)
		}
		for _, line := range strings.Split(strings.TrimSpace(got), "\n")[1:] {
			if !strings.HasSuffix(line, ".") {
				t.Errorf("%s: %q is no sentence", text, line)
			}
		}
	}
}

func TestCheckExplainsEveryLimit(t *testing.T) {
	for _, text := range slices.Concat(cli.RuleLimits, cli.OneSubjectLimits) {
		limit, err := weir.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		if e := explanations.Of(limit); e.Capacity == "" || e.Burst == "" || e.Worst == "" || e.Memory == "" {
			t.Errorf("%s: the explanation is incomplete: %+v", text, e)
		}
	}
}
