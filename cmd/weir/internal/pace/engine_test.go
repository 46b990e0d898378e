package pace

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/sqltest"
)

// The program's own bounds end it long before this bound.
const patience = time.Minute

// pipe returns weir pace as a process of its own, with n lines as its input. It is killed if it does not end in time.
func pipe(t *testing.T, n int, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, exe)
	cmd.Args = append([]string{"weir", "pace"}, args...)
	cmd.Stdin = strings.NewReader(sequence(n))
	return cmd
}

func sequence(n int) string {
	var lines strings.Builder
	for i := range n {
		_, _ = fmt.Fprintln(&lines, i+1)
	}
	return lines.String()
}

// Three pipes on one Redis share one pace, by the text of their limits or by a name. The lines of each stay in order.
func TestThreePipesShareOnePace(t *testing.T) {
	for name, args := range map[string][]string{
		"by the limits": {"50/s"},
		"by the name":   {"50/s", "--name", "vendor"},
		"with a quota":  {"50/s and fixed window 1000/d"},
		"by key":        {"50/s", "--key", "2"},
		"in turns":      {"50/s", "--key", "1", "--fair"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testThreePipes(t, append(args, "--engine", "redis://"+redistest.Start(t).Addr)...)
		})
	}
}

func TestThreePipesShareOnePaceInADatabase(t *testing.T) {
	for name, start := range map[string]func() string{
		"postgres": func() string {
			return "postgres://postgres@/postgres?sslmode=disable&host=" + url.QueryEscape(sqltest.PostgreSQL(t, "fsync=off").Dir)
		},
		"mysql":  func() string { return "mysql://root@/test?socket=" + sqltest.MariaDB(t).Socket() },
		"sqlite": func() string { return "sqlite:" + t.TempDir() + "/weir.db" },
	} {
		t.Run(name, func(t *testing.T) { testThreePipes(t, "50/s", "--engine", start()) })
	}
}

func testThreePipes(t *testing.T, args ...string) {
	t.Helper()
	const pipes, lines = 3, 40
	began := time.Now()
	outputs := make(chan string, pipes)
	for range pipes {
		cmd := pipe(t, lines, args...)
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				outputs <- err.Error() + ": " + string(out)
				return
			}
			outputs <- string(out)
		}()
	}
	for range pipes {
		if got := <-outputs; got != sequence(lines) {
			t.Errorf("a pipe wrote %q, want its %d lines in order", got, lines)
		}
	}
	// The first line goes at once.
	if took, least := time.Since(began), (pipes*lines-1)*time.Second/50; took < least {
		t.Errorf("%d lines at 50/s took %v, want %v at least", pipes*lines, took, least)
	}
}

func TestPipesOfOtherNamesShareNothing(t *testing.T) {
	server := redistest.Start(t)
	for _, name := range []string{"a", "b"} {
		began := time.Now()
		out, err := pipe(t, 1, "1/h", "--name", name, "--engine", "redis://"+server.Addr).Output()
		if err != nil || string(out) != "1\n" || time.Since(began) > patience {
			t.Errorf("--name %s: got %q, %v after %v, want its line", name, out, err, time.Since(began))
		}
	}
}

// Three pipes of two commands at once each share two slots. A command takes 200 ms.
func TestThreePipesShareTheSlotsOfTheirCommands(t *testing.T) {
	server := redistest.Start(t)
	const pipes, lines = 3, 4
	began := time.Now()
	outputs := make(chan string, pipes)
	for range pipes {
		cmd := pipe(t, lines, "100/s", "--burst", "10", "--at-once", "2", "--engine", "redis://"+server.Addr, "--", "sh", "-c", "sleep 0.2; echo {}")
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				out = append(out, err.Error()...)
			}
			outputs <- string(out)
		}()
	}
	for range pipes {
		got := slices.Sorted(strings.Lines(<-outputs))
		if strings.Join(got, "") != sequence(lines) {
			t.Errorf("a pipe's commands wrote %q, want each of its %d lines once", got, lines)
		}
	}
	if took, least := time.Since(began), pipes*lines/2*200*time.Millisecond; took < least {
		t.Errorf("%d commands of 200 ms, two at once, took %v, want %v at least", pipes*lines, took, least)
	}
}

func TestAPipeSurvivesARestartOfRedis(t *testing.T) {
	server := redistest.Start(t)
	cmd := pipe(t, 60, "20/s", "--engine", "redis://"+server.Addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 6)
	if _, err := io.ReadFull(out, first); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	server.Restart()
	rest, err := io.ReadAll(out)
	if got := string(first) + string(rest); err != nil || got != sequence(60) {
		t.Errorf("got %q, %v, want all lines", got, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the pipe ended with %v, want nil", err)
	}
}

// While Redis is away, two pipes would each let a half of the limit through. Lines that come in the outage cannot go before it.
func TestAPipeGoesOnAtItsPartOfThePaceWhileRedisIsAway(t *testing.T) {
	server := redistest.Start(t)
	cmd := pipe(t, 0, "50/s", "--on-failure", "local", "--peers", "2", "--deadline", "50ms", "--engine", "redis://"+server.Addr)
	cmd.Stdin = nil
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first, rest := sequence(3), strings.TrimPrefix(sequence(60), sequence(3))
	if _, err := io.WriteString(in, first); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len(first))); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	defer server.Cont()
	began := time.Now()
	if _, err := io.WriteString(in, rest); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(out); err != nil || string(got) != rest {
		t.Errorf("got %q, %v, want all lines", got, err)
	}
	if took, least := time.Since(began), 40*time.Second/25; took < least {
		t.Errorf("the lines took %v without Redis, want %v at least, at half the rate", took, least)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the pipe ended with %v, want nil", err)
	}
}

// Lines wait in the line of a server that is away, and the pipe ends when it stays away.
func TestAPipeSaysThatItsServerIsAway(t *testing.T) {
	server := redistest.Start(t)
	cmd := pipe(t, 1000, "20/s", "--engine", "redis://"+server.Addr)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	began := time.Now()
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	if took := time.Since(began); err == nil || took < 10*time.Second || took > 40*time.Second {
		t.Errorf("the pipe ended with %v after %v, want an error after 10s", err, took)
	}
	if text := said.String(); !strings.Contains(text, "weir: pace: --engine: away for 10s: ") || !strings.Contains(text, "\nhint: is the server running") {
		t.Errorf("it said %q", text)
	}
}
