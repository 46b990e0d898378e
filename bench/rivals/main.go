// Program rivals measures rivals of other languages beside Weir, on one core: governor (Rust), Guava and resilience4j (Java).
//
//	go run ./bench/rivals
//
// It needs cargo, javac, java and mvn, which fetch the versions that rust/Cargo.toml and jvm/pom.xml name from crates.io and Maven
// Central. It says which of them are missing and measures the rest. A figure is the least of several windows. Each call must be
// admitted.
package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/workload"
)

//go:embed rust jvm
var sources embed.FS

const (
	keyCount = 1_000_000
	draws    = 1 << 20
	windows  = 7
)

// line is what a program measured.
type line struct {
	name            string
	ns              float64
	admitted, calls int64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench/rivals:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "weir-rivals-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := os.CopyFS(folder, sources); err != nil {
		return err
	}
	keys := workload.Zipf(keyCount, draws, 1.01, 1)
	ids, err := numbers(keys)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "keys"), encoded(ids), 0o600); err != nil {
		return err
	}
	lines, err := ours(keys, ids)
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context, string) ([]line, error){rust, jvm} {
		more, err := measure(ctx, folder)
		if missing, ok := errors.AsType[*exec.Error](err); ok {
			fmt.Fprintf(os.Stderr, "bench/rivals: not measured: %v\n", missing)
		} else if err != nil {
			return err
		}
		lines = append(lines, more...)
	}
	text, err := table(lines)
	if err == nil {
		_, err = fmt.Print(text)
	}
	return err
}

// table fails unless every call was admitted.
func table(lines []line) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "One admitted decision on one core, %s/%s; a million keys (Zipf, the same for all) unless it says one:\n\n| | ns |\n|---|---:|\n", runtime.GOOS, runtime.GOARCH)
	for _, l := range lines {
		if l.admitted != l.calls || l.calls == 0 {
			return "", fmt.Errorf("%s: %d of %d calls were admitted, want all", l.name, l.admitted, l.calls)
		}
		fmt.Fprintf(&out, "| %s | %.1f |\n", l.name, l.ns)
	}
	return out.String(), nil
}

// numbers returns the keys of a sequence as numbers.
func numbers(keys *workload.Sequence) (ids []uint32, err error) {
	for i := range keys.Len() {
		n, err := strconv.ParseUint(strings.TrimPrefix(keys.Key(i), "user-"), 10, 32)
		if err != nil {
			return nil, err
		}
		ids = append(ids, uint32(n))
	}
	return ids, nil
}

func encoded(ids []uint32) (b []byte) {
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, id)
	}
	return b
}

func rust(ctx context.Context, folder string) ([]line, error) {
	return measured(ctx, filepath.Join(folder, "rust"), "cargo", "run", "--quiet", "--release", "--", filepath.Join(folder, "keys"))
}

func jvm(ctx context.Context, folder string) ([]line, error) {
	in := filepath.Join(folder, "jvm")
	for _, words := range [][]string{
		{"mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies", "-DoutputDirectory=jars"},
		{"javac", "-cp", "jars/*", "Rivals.java"},
	} {
		if _, err := output(ctx, in, words...); err != nil {
			return nil, err
		}
	}
	return measured(ctx, in, "java", "-cp", "jars/*:.", "Rivals")
}

// output runs a command in a folder.
func output(ctx context.Context, folder string, words ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	var stderr bytes.Buffer
	c.Dir, c.Stderr = folder, &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", strings.Join(words, " "), err, out, stderr.Bytes())
	}
	return out, nil
}

// measured runs a command that prints lines of a name, nanoseconds, admitted calls and calls.
func measured(ctx context.Context, folder string, words ...string) (lines []line, err error) {
	out, err := output(ctx, folder, words...)
	if err != nil {
		return nil, err
	}
	for text := range strings.Lines(string(out)) {
		l := line{}
		name, rest, _ := strings.Cut(strings.TrimSpace(text), "\t")
		if _, err := fmt.Sscanf(rest, "%f\t%d\t%d", &l.ns, &l.admitted, &l.calls); err != nil {
			return nil, fmt.Errorf("%s printed %q: %w", words[0], text, err)
		}
		l.name = name
		lines = append(lines, l)
	}
	return lines, nil
}

// ours measures Weir.
func ours(keys *workload.Sequence, ids []uint32) (lines []line, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	wide := weir.TokenBucket{Rate: weir.PerSecond(weir.MaxRate), Burst: 1000}
	for _, s := range []struct {
		name  string
		limit weir.Limit
	}{
		{"Limiter, bucket", wide}, {"Limiter, Bursty", weir.Bursty{Rate: weir.PerSecond(weir.MaxRate), Over: time.Second}},
		{"Limiter, WarmUp", weir.WarmUp{Rate: weir.PerSecond(weir.MaxRate), Over: time.Microsecond, Cold: 3}},
		{"Limiter, Cycle", weir.Cycle{Rate: weir.Per(1e9, time.Hour)}},
	} {
		l, err := weir.New(s.limit)
		if err != nil {
			return nil, err
		}
		lines = append(lines, least(s.name, func(int) bool { return l.Allow() }))
	}
	one, err1 := weir.NewKeyed[uint32](wide)
	many, err2 := weir.NewKeyed[uint32](wide)
	texts, err3 := weir.NewKeyed[string](wide)
	rule, err4 := weir.NewRule("rivals", wide)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	memory := weir.NewMemory(weir.MemoryOptions{})
	return append(lines,
		least("Keyed, one key", func(int) bool { return one.Allow(7) }),
		least("Keyed, numbers as keys", func(i int) bool { return many.Allow(ids[i]) }),
		least("Keyed, texts as keys", func(i int) bool { return texts.Allow(keys.Key(i)) }),
		least("Memory, texts as keys", func(i int) bool {
			d, err := memory.Take(context.Background(), rule.For(keys.Key(i), 1))
			return err == nil && d.Allowed
		}),
	), nil
}

func least(name string, take func(int) bool) line {
	l := line{name: "Weir: " + name, ns: math.Inf(1), calls: windows * draws}
	for range windows {
		began := time.Now()
		for i := range draws {
			if take(i) {
				l.admitted++
			}
		}
		l.ns = min(l.ns, float64(time.Since(began))/draws)
	}
	return l
}
