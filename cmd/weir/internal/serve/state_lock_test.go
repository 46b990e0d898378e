package serve

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// claimed returns a state file that a daemon has claimed, in a folder of its own.
func claimed(t *testing.T) *stateFile {
	t.Helper()
	f := &stateFile{path: filepath.Join(t.TempDir(), "state"), log: slog.New(slog.DiscardHandler)}
	if err := f.claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSecondDaemonSaysSoOnceAndLoadsTheLastSaveOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, rule := claimed(t), slowRule(t)
		go func() {
			time.Sleep(claimPatience - claimEvery)
			engine := weir.NewMemory(first.options())
			if d, err := engine.Take(t.Context(), rule.For("k", 7)); err != nil || !d.Allowed {
				t.Errorf("take: %+v, %v", d, err)
			}
			if err := first.save(engine); err != nil {
				t.Error(err)
			}
			first.release()
		}()
		var log bytes.Buffer
		second := &stateFile{path: first.path, log: slog.New(slog.NewTextHandler(&log, nil))}
		if err := second.claim(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer second.release()
		if got := spent(t, &stateFile{path: first.path, log: first.log}); got != 7 {
			t.Errorf("the second daemon loads %d spent, want the 7 of the first one's last save", got)
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "another weir serve uses the state file") {
			t.Errorf("the second daemon logged %q, want one line that names the first", got)
		}
	})
}

func TestSecondDaemonEndsIfTheFirstKeepsRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := claimed(t)
		defer first.release()
		second, start := &stateFile{path: first.path, log: first.log}, time.Now()
		err := second.claim(t.Context())
		if want := "serve: --state " + first.path + ": another weir serve uses this file"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if took := time.Since(start); took != claimPatience {
			t.Errorf("it waited %v, want %v", took, claimPatience)
		}
	})
}

func TestStopEndsTheWaitForTheStateFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := claimed(t)
		defer first.release()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(claimPatience/2, cancel)
		start := time.Now()
		if err := (&stateFile{path: first.path, log: first.log}).claim(ctx); err == nil || !strings.Contains(err.Error(), "stopped while") {
			t.Errorf("got %v, want that it was stopped", err)
		}
		if took := time.Since(start); took != claimPatience/2 {
			t.Errorf("it ended after %v, want %v", took, claimPatience/2)
		}
	})
}

func TestClaimRemovesWhatKilledSavesLeftAndNothingElse(t *testing.T) {
	folder := t.TempDir()
	others := []string{"other.1.part", "state.1.2.part", "state.bak", "state.part", "state.x.part"}
	for _, name := range append([]string{"state.1.part", "state.2345.part", "state.overrides.77.part", "state.overrides.secret.5.part"}, others...) {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := &stateFile{path: filepath.Join(folder, "state"), log: slog.New(slog.DiscardHandler)}
	if err := f.claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.release()
	var got []string
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if want := append(others, "state.lock"); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}

// A closed file stands for a file on a file system without locks.
func TestFileThatCannotBeLockedIsUsedWithAWarning(t *testing.T) {
	f := claimed(t)
	f.release()
	var log bytes.Buffer
	f.log = slog.New(slog.NewTextHandler(&log, nil))
	if err := f.awaitLock(t.Context(), f.lock); err != nil {
		t.Error(err)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "cannot lock the state file") {
		t.Errorf("the log says %q, want one line", got)
	}
}

// As on a file system without locks.
func TestTwoThatSaveOneFileWithoutALockNeverTearIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	var saving sync.WaitGroup
	for i := range 2 {
		f, engine := &stateFile{path: path, log: slog.New(slog.DiscardHandler)}, weir.NewMemory(weir.MemoryOptions{})
		for k := range 1000 * (i + 1) {
			if _, err := engine.Take(t.Context(), slowRule(t).For(fmt.Sprint(k), 1)); err != nil {
				t.Fatal(err)
			}
		}
		saving.Go(func() {
			for range 50 {
				if err := f.save(engine); err != nil {
					t.Error(err)
				}
				if _, err := f.load(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	saving.Wait()
}

// As in a rolling restart: the new daemon starts before the old one ends.
func TestRestartThatOverlapsKeepsTheBudgets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	first := startKeeper(t, path)
	url := first.url(t)
	second := startKeeper(t, path)
	awaitLine(t, second.log, "waiting for its last save")
	if got := postTo(t, url, `{"rule":"r","key":"k","cost":7}`); !strings.Contains(got, `"remaining":13,`) {
		t.Errorf("the old daemon answers %s, want 13 remaining", got)
	}
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := first.cmd.Wait(); err != nil {
		t.Errorf("the old daemon ended with %v, want a good end", err)
	}
	if got := postTo(t, second.url(t), `{"rule":"r","key":"k","cost":0}`); !strings.Contains(got, `"remaining":13,`) {
		t.Errorf("the new daemon answers %s, want 13 remaining", got)
	}
}

// process is a weir serve with a state file and the rule slowRule.
type process struct {
	cmd      *exec.Cmd
	out, log *bufio.Scanner
}

func startKeeper(t *testing.T, state string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args = []string{"weir", "serve", "--http", "127.0.0.1:0", "--rule", slowRule(t).String(), "--state", state}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &process{cmd, bufio.NewScanner(out), bufio.NewScanner(log)}
}

// url returns the URL once the daemon listens.
func (p *process) url(t *testing.T) string {
	t.Helper()
	_, url, _ := strings.Cut(awaitLine(t, p.out, "weir listens on "), "weir listens on ")
	return url
}

func awaitLine(t *testing.T, lines *bufio.Scanner, text string) string {
	t.Helper()
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return lines.Text()
		}
	}
	t.Fatalf("the daemon never says %q", text)
	return ""
}

func postTo(t *testing.T, url, body string) string {
	t.Helper()
	response, err := http.Post(url+"/v1/take", "", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
