package serve

import (
	"bufio"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

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

func TestASignalSavesAndAHangupDoesNotKill(t *testing.T) {
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
				if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
					t.Fatal(err)
				}
			}
			if args != nil {
				for lines := bufio.NewScanner(log); lines.Scan() && !strings.Contains(lines.Text(), "state saved"); {
				}
				if got := spent(t, f); got != 7 {
					t.Errorf("after SIGUSR1 %d spent in the file, want 7", got)
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

func TestAddressesBelongToNetworks(t *testing.T) {
	for key, want := range map[string]string{ // empty for no network
		"2001:db8:1:2:3:4:5:6":  "2001:db8:1:2::/64",
		"2001:db8:1:2::/64":     "2001:db8:1::/48",
		"fe80::1%eth0":          "fe80::/64",
		"192.0.2.77":            "192.0.2.0/24",
		"::ffff:192.0.2.77":     "192.0.2.0/24",
		"2001:db8:1::/48":       "",
		"192.0.2.0/24":          "",
		"alice":                 "",
		"":                      "",
		"192.0.2.77:8080":       "",
		"2001:db8:1:2::/64, me": "",
	} {
		network, ok := networkOf(key)
		if ok != (want != "") || ok && network != want {
			t.Errorf("%q: got %s, %v, want %q", key, network, ok, want)
		}
	}
}

// A client that owns a /64 gets the limit of one address and one more, because only its first address had room. Later
// clients have limits of their own.
func TestAddressesWithoutRoomShareTheBudgetOfTheirNetwork(t *testing.T) {
	f := stateFile{keys: 1, log: slog.New(slog.DiscardHandler)}
	engine := weir.NewMemory(f.options())
	rule, err := weir.ParseRule("default=token bucket 5/366d burst 5")
	if err != nil {
		t.Fatal(err)
	}
	take := func(addresses string, n int) (admitted int) {
		for i := range n {
			d, err := engine.Take(t.Context(), rule.For(fmt.Sprintf(addresses, i), 1))
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				admitted++
			}
		}
		return admitted
	}
	if got := take("2001:db8:1:2::%x", 1000); got > 5+5 {
		t.Errorf("1000 addresses of a network: %d admitted, want at most 10", got)
	}
	if got := take("192.0.2.%d", 5); got != 5 {
		t.Errorf("5 addresses of another network: %d admitted, want 5", got)
	}
}
