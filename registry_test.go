package weir_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/replay"
)

// limitsOfAllKinds are limits of every kind.
var limitsOfAllKinds = []string{
	"token bucket 10/s burst 20", "leaky bucket 5/s queue 10 nodelay 3", "fixed window 100/1m", "first window 100/1m", "sliding window 1000/h",
	"sliding log 5/10s gap 1s count denied", "sliding log 5/10s", "rate gate 2/s", "cycle 50/500ms origin 250ms",
	"cycle 50/500ms from first use", "quota 100/month from day 15 at 06:00 in Europe/Paris",
	"concurrency 20 lease 30s", "concurrency 20", "bursty 5/s over 1s", "warm up 5/s over 4s cold 3",
	"nginx limit_req 5/s burst 10 delay 3", "unlimited", "deny all",
}

func TestEveryLimitSaysAllThatTheRegistryAsks(t *testing.T) {
	for _, problem := range weir.ProblemsOfKinds(limitsOfAllKinds) {
		t.Error(problem)
	}
}

func TestAFieldLeftOutOfAnEntryIsNamed(t *testing.T) {
	weir.RegisterToy(t)
	texts := []string{"toy 10s"}
	if problems := weir.ProblemsWithout("", texts); len(problems) != 0 {
		t.Errorf("the whole entry has problems: %q", problems)
	}
	for _, field := range []string{"name", "read", "revive"} {
		problems := weir.ProblemsWithout(field, texts)
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, ": "+field+" ") }) {
			t.Errorf("without %s: got %q, want a problem that names it", field, problems)
		}
	}
}

// Everything that decides accepts a limit of the registry: the limit needs only its entry and its four functions.
func TestALimitNeedsNothingButItsEntry(t *testing.T) {
	weir.RegisterToy(t)
	const text = "toy 10s"
	limit, err := weir.ParseLimit(text)
	if err != nil || limit != (weir.Toy{Rest: 10 * time.Second}) || limit.String() != text {
		t.Fatalf("ParseLimit(%q) = %v and error %v", text, limit, err)
	}
	rule, err := weir.ParseRule("doll=" + text + " and fixed window 9/h")
	if err != nil {
		t.Fatal(err)
	}
	now := int64(1_700_000_000_000_000_000)
	clock := func() int64 { return now }
	at := time.Unix(0, now)
	one, keyed := mustLimit(t, limit), mustKeyed[string](t, limit)
	memory := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	if !one.AllowAt(at, 1) || !keyed.AllowAt(at, "a", 1) {
		t.Fatal("the first unit is refused")
	}
	spend(t, memory, rule.For("a", 1))
	memory = loaded(t, saved(t, memory), clock)
	const want = 10 * time.Second
	afterwards, err := memory.Take(t.Context(), rule.For("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]weir.Decision{
		"Limiter": one.TakeAt(at, 1), "Keyed": keyed.TakeAt(at, "a", 1), "Memory after a snapshot": afterwards,
	} {
		if got.Allowed || got.RetryAfter != want {
			t.Errorf("%s: got %+v, want a refusal for %v", name, got, want)
		}
	}
	if report := replayed(t, text); report.Admitted != 1 || report.Refused != 1 {
		t.Errorf("replay: got %d admitted and %d refused, want 1 and 1", report.Admitted, report.Refused)
	}
}

// replayed decides two requests of one client, 5 s apart, under the limit.
func replayed(t *testing.T, limit string) replay.LimitReport {
	t.Helper()
	const log = `10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5
10.0.0.1 - - [17/May/2015:10:05:08 +0000] "GET / HTTP/1.1" 200 5
`
	candidate, err := replay.ParseCandidate(limit)
	if err != nil {
		t.Fatal(err)
	}
	key, err := replay.ParseKey("ip")
	if err != nil {
		t.Fatal(err)
	}
	traffic := replay.NewTraffic(nil, key)
	if err := traffic.ReadLog("log", strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	report, err := traffic.Replay([]replay.Candidate{candidate}, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return report.Limits[0]
}
