package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/program"
	"github.com/weirflow/weir/internal/randtest"
)

// hostileLimits are limits at the ends of their bounds.
var hostileLimits = []string{
	"1/366d", "1000000000/s", "1/1ns", "token bucket 1/366d burst 9007199254740992", "token bucket 9007199254740992/366d burst 1",
	"leaky bucket 1/366d queue 9007199254740991", "leaky bucket 1000000000/s queue 0", "fixed window 1/1ns", "fixed window 9007199254740992/366d",
	"sliding window 1/1ns", "sliding window 9007199254740992/366d", "sliding log 1/366d", "sliding log 1000000/366d gap 366d", "sliding log 3/1ns count denied",
	"rate gate 1/366d", "rate gate 1000/1ns", "cycle 1/1ns origin 1ns", "cycle 9007199254740992/366d origin 366d", "concurrency 1", "concurrency 9007199254740992 lease 366d",
	"bursty 1/366d over 366d", "bursty 1000000000/s over 366d", "warm up 1/366d over 366d", "warm up 1000000000/s over 366d cold 3", "warm up 1/s over 1ns",
	"nginx limit_req 1/m burst 100000000", "nginx limit_req 100000000/s nodelay", "unlimited", "deny all", "1/s and 1000000000/s and fixed window 1/366d",
}

// hostileTimes are at the ends of the range of logs, around the epoch, and outside the range.
var hostileTimes = []string{
	`"1678-01-01T00:00:00Z"`, `"1678-01-01T00:00:00.000000001Z"`, `"2261-12-31T23:59:59.999999999Z"`, `"2261-12-31T23:59:59Z"`, `"1677-12-31T23:59:59Z"`, `"2262-01-01T00:00:00Z"`,
	"0", "-0.000000001", "0.000000001", "-1", "1e9", "1700000000", "1700000000.5", "1700000000000", "9214646399", "-9214560000", `"17/May/2015:10:05:03 +0000"`, `""`, "null",
}

// hostileLog returns lines with few instants, keys of all lengths and extreme costs.
func hostileLog(random *rand.Rand) string {
	var b strings.Builder
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	times := []string{pick(hostileTimes), pick(hostileTimes), pick(hostileTimes)}
	keys := []string{"a", "", `\u001b[31m\u0007\r\n`, strings.Repeat("k", 1+random.IntN(5000)), "größer 鍵", `\ud800`}
	addresses := []string{"10.0.0.1", "[2001:db8::1%eth0]:1", "::ffff:10.0.0.1", "10.0.0.1, 10.0.0.2", "", "10.0.0.1:", "unix:", `\u0000`, strings.Repeat("1", 5000)}
	for range []int{0, 1, 2, 3, 30}[random.IntN(5)] {
		fmt.Fprintf(&b, `{"ts":%s,"ip":"%s","who":"%s","cost":%s}`, pick(times), pick(addresses), pick(keys), pick([]string{"0", "1", "1000000000", "1000000001", "-1", "1.5", "7"}))
		b.WriteString(pick([]string{"\n", "\r\n", "\n\n", "\n{\n"}))
	}
	return b.String()
}

// hostileCommand returns one of the commands that try limits, over the log hostile.log.
func hostileCommand(random *rand.Rand) []string {
	limit := func() string { return hostileLimits[random.IntN(len(hostileLimits))] }
	key := []string{"ip", "who"}[random.IntN(2)]
	args := [][]string{
		{"check", limit(), "--plot", "terminal"},
		{"check", limit(), "--plot", "plot.svg"},
		{"replay", "--limit", limit(), "--key", key, "hostile.log"},
		{"replay", "--limit", limit(), "--limit", limit(), "--cost", "cost", "--plot", "plot.svg", "--key", key, "hostile.log"},
		{"replay", "--suggest", []string{"refuse 0.0001%", "refuse 100%", "refuse 0.0001% of clients", "refuse 50% of clients", "spare 100%", "at most 1/366d in all", "at most 1000000000/s in all"}[random.IntN(7)], "--cost", "cost", "--key", key, "hostile.log"},
		{"simulate", "--traffic", "log hostile.log", "--key", key, "--limit", limit(), "--per-client"},
		{"simulate", "--traffic", "log hostile.log speed 0.001", "--key", key, "--limit", limit(), "--wait", "8784h", "--plot", "plot.svg"},
		{"simulate", "--traffic", "log hostile.log retry obeying jitter 366d", "--key", key, "--limit", limit(), "--server", "1/366d", "--processes", "7", "--lose", "1ns"},
		{"simulate", "--traffic", "storm 9 at 0s cost 1000000000", "--for", []string{"1ns", "1s", "8784h"}[random.IntN(3)], "--limit", limit(), "--wait", "1h"},
	}
	return args[random.IntN(len(args))]
}

// Whatever the log and the limit say, each command answers on a terminal of any width, or says what is wrong. It takes
// neither long nor much memory.
func TestHostileLogsAndLimitsGetAnAnswer(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Chdir(t.TempDir())
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	answered, rounds := 0, randtest.Rounds(t, 400, 400)
	for range rounds {
		if err := os.WriteFile("hostile.log", []byte(hostileLog(random)), 0o600); err != nil {
			t.Fatal(err)
		}
		args, columns := hostileCommand(random), 1+random.IntN(500)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		code, errs := 0, ""
		withTerminal(t, columns, func(terminal *os.File) {
			var b strings.Builder
			code = program.Run(args, strings.NewReader(""), terminal, &b)
			errs = b.String()
		})
		runtime.ReadMemStats(&after)
		if code == 0 {
			answered++
		}
		took, bytes := time.Since(start), after.TotalAlloc-before.TotalAlloc
		if took > 20*time.Second || bytes > 256<<20 || code != 0 && !strings.Contains(errs, "weir: ") || strings.Contains(errs, "bug") {
			t.Errorf("%d columns, %q: exit %d in %v with %d MiB, %s", columns, args, code, took, bytes>>20, errs)
		}
	}
	if answered < rounds/3 {
		t.Errorf("%d of %d commands answered, want a third", answered, rounds)
	}
}
