package main

import (
	"bufio"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirflow/weir"
)

// saveInScript sends the daemon a save signal and waits until the daemon logs the save.
func saveInScript(ts *testscript.TestScript, neg bool, _ []string) {
	d := theDaemon(ts)
	ts.Check(ts.Exec("kill", "-USR1", strconv.Itoa(d.cmd.Process.Pid)))
	for {
		line, err := d.log.ReadString('\n')
		ts.Check(err)
		switch {
		case strings.Contains(line, "state saved") && !neg, strings.Contains(line, "not saved") && neg:
			return
		case strings.Contains(line, "saved\""):
			ts.Fatalf("weir serve logged %q", line)
		}
	}
}

// crashInScript kills the daemon with SIGKILL.
func crashInScript(ts *testscript.TestScript, _ bool, _ []string) {
	d := theDaemon(ts)
	ts.Check(d.cmd.Process.Kill())
	_ = d.cmd.Wait() // an error, because the process was killed
}

// spent returns the units that the file records as spent, of 20.
func spent(t *testing.T, f *stateFile) int64 {
	t.Helper()
	engine, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	d, err := engine.Peek(t.Context(), slowRule(t).For("k", 0))
	if err != nil {
		t.Fatal(err)
	}
	return 20 - d.Remaining
}

func slowRule(t *testing.T) *weir.Rule {
	t.Helper()
	rule, err := weir.ParseRule("r=token bucket 20/366d burst 20")
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func TestStateIsSavedInEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &stateFile{path: filepath.Join(t.TempDir(), "state"), every: 30 * time.Second, log: slog.New(slog.DiscardHandler)}
		engine := weir.NewMemory(weir.MemoryOptions{})
		go f.keep(t.Context(), engine, nil)
		for i := range int64(3) {
			if d, err := engine.Take(t.Context(), slowRule(t).For("k", 1)); err != nil || !d.Allowed {
				t.Fatalf("take: %+v, %v", d, err)
			}
			time.Sleep(f.every - 1)
			synctest.Wait()
			if got := spent(t, f); got != i {
				t.Errorf("just before save %d: %d spent in the file, want %d", i+1, got, i)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if got := spent(t, f); got != i+1 {
				t.Errorf("after save %d: %d spent in the file, want %d", i+1, got, i+1)
			}
		}
	})
}

// TestSaveThatFailsLeavesTheFileBefore removes the folder.
func TestSaveThatFailsLeavesTheFileBefore(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	f := &stateFile{path: filepath.Join(folder, "state"), log: slog.New(slog.DiscardHandler)}
	engine := weir.NewMemory(weir.MemoryOptions{})
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.save(engine); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(folder, folder+" away"); err != nil {
		t.Fatal(err)
	}
	if err := f.save(engine); err == nil || !strings.Contains(err.Error(), "cannot write it") {
		t.Errorf("saving where no folder is: got %v", err)
	}
	if err := os.Rename(folder+" away", folder); err != nil {
		t.Fatal(err)
	}
	if got := spent(t, f); got != 0 {
		t.Errorf("%d spent in the file before, want 0", got)
	}
}

// TestSaveThatCannotReplaceTheFileLeavesNothingBeside puts a folder at the path.
func TestSaveThatCannotReplaceTheFileLeavesNothingBeside(t *testing.T) {
	folder := t.TempDir()
	f := &stateFile{path: filepath.Join(folder, "state"), log: slog.New(slog.DiscardHandler)}
	if err := os.MkdirAll(filepath.Join(f.path, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.save(weir.NewMemory(weir.MemoryOptions{})); err == nil || !strings.Contains(err.Error(), "cannot write it") {
		t.Errorf("saving with a folder in the way: got %v", err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, want what was in the way alone (%v)", entries, err)
	}
}

// As in "weir serve 2>&1 | tee log", where an interrupt ends tee first.
func TestStopSavesAlthoughTheLogHasNoReader(t *testing.T) {
	log, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	f := &stateFile{path: filepath.Join(t.TempDir(), "state"), log: slog.New(slog.DiscardHandler)}
	cmd := daemonCommand(t, "--http", "127.0.0.1:0", "--rule", slowRule(t).String(), "--state", f.path)
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	lines := bufio.NewScanner(log)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "try: ") {
		if url, found := strings.CutPrefix(lines.Text(), "weir listens on "); found {
			response, err := http.Post(url+"/v1/take", "", strings.NewReader(`{"rule":"r","key":"k","cost":7}`))
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
		}
	}
	_ = log.Close()
	if err := stopDaemon(cmd); err != nil {
		t.Errorf("weir serve ended with %v, want a good end", err)
	}
	if got := spent(t, f); got != 7 {
		t.Errorf("%d spent in the file, want 7", got)
	}
}

// The first link leads to a second link, and that to a file that does not exist yet.
func TestStateBehindLinksIsSavedWhereTheyLead(t *testing.T) {
	folder := t.TempDir()
	link, target := filepath.Join(folder, "link"), filepath.Join(folder, "disk", "state")
	if err := os.Mkdir(filepath.Join(folder, "disk"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, leads := range map[string]string{link: "disk/other", filepath.Join(folder, "disk", "other"): target} {
		if err := os.Symlink(leads, name); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(2) { // first create the file, then replace it
		f := &stateFile{path: link, log: slog.New(slog.DiscardHandler)}
		if err := f.claim(t.Context()); err != nil {
			t.Fatal(err)
		}
		engine, err := f.load()
		if err != nil {
			t.Fatal(err)
		}
		if d, err := engine.Take(t.Context(), slowRule(t).For("k", 7)); err != nil || !d.Allowed {
			t.Fatalf("take: %+v, %v", d, err)
		}
		if err := f.save(engine); err != nil {
			t.Fatal(err)
		}
		f.release()
		if got := spent(t, &stateFile{path: target, log: f.log}); got != 7*(i+1) {
			t.Errorf("%d spent in the file behind the links, want %d", got, 7*(i+1))
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link is one no more: %v, %v", info.Mode(), err)
		}
	}
}

func TestStateBehindALinkToItselfIsRefused(t *testing.T) {
	f := &stateFile{path: filepath.Join(t.TempDir(), "link")}
	if err := os.Symlink("link", f.path); err != nil {
		t.Fatal(err)
	}
	if err := f.claim(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot follow it") {
		t.Errorf("claiming a link to itself: got %v", err)
	}
}

func TestSavedStateIsPrivateAndLeavesNothingBeside(t *testing.T) {
	folder := t.TempDir()
	f := &stateFile{path: filepath.Join(folder, "state"), log: slog.New(slog.DiscardHandler)}
	if err := os.WriteFile(f.path, []byte("old"), 0o644); err != nil { // readable by others
		t.Fatal(err)
	}
	if err := f.save(weir.NewMemory(weir.MemoryOptions{})); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the folder holds %v, want the state alone (%v)", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, want 0600 (%v)", info.Mode(), err)
	}
}

func TestHangupSavesAndDoesNotKill(t *testing.T) {
	f := &stateFile{path: filepath.Join(t.TempDir(), "state"), log: slog.New(slog.DiscardHandler)}
	for name, args := range map[string][]string{"with a file": {"--state", f.path, "--state-every", "0"}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			cmd := daemonCommand(t, append([]string{"--http", "127.0.0.1:0", "--rule", slowRule(t).String()}, args...)...)
			log, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			url := startAndFindURL(t, cmd)
			if got := postTake(t, url, `{"rule":"r","key":"k","cost":7}`); !strings.HasPrefix(got, `{"allowed":true,`) {
				t.Errorf("take: got %s", got)
			}
			if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			if args != nil {
				for lines := bufio.NewScanner(log); lines.Scan() && !strings.Contains(lines.Text(), "state saved"); {
				}
				if got := spent(t, f); got != 7 {
					t.Errorf("after SIGHUP %d spent in the file, want 7", got)
				}
			}
			if got := postTake(t, url, `{"rule":"r","key":"k"}`); !strings.HasPrefix(got, `{"allowed":true,`) {
				t.Errorf("take after SIGHUP: got %s", got)
			}
			if err := stopDaemon(cmd); err != nil {
				t.Errorf("weir serve ended with %v, want a good end", err)
			}
		})
	}
}
