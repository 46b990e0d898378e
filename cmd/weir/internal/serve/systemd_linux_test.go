package serve

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/testprocess"
)

// underManager returns weir serve as a service manager starts it: with the listener, if any, and the variables.
func underManager(t *testing.T, on net.Listener, variables []string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The shell becomes the daemon, whose number it knows.
	cmd := exec.Command("bash", append([]string{"-c", `LISTEN_PID=$$ exec -a weir "$0" "$@"`, exe, "serve"}, args...)...)
	cmd.Env = append(os.Environ(), variables...)
	cmd.Stdout, cmd.Stderr = io.Discard, t.Output()
	if on != nil {
		file, err := on.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		cmd.ExtraFiles = []*os.File{file}
		name := "http"
		if on.Addr().Network() == "unix" {
			name = "admin"
		}
		cmd.Env = append(cmd.Env, "LISTEN_FDS=1", "LISTEN_FDNAMES="+name)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func TestARestartUnderAHeldSocketRefusesNoConnection(t *testing.T) {
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer on.Close()
	state := filepath.Join(t.TempDir(), "weir.state")
	start := func() *exec.Cmd {
		return underManager(t, on, nil, "--http", "127.0.0.1:1", "--rule", "default=fixed window 900000000/366d", "--state", state, "--grace", "5s")
	}
	daemon := start()
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer stop()
	var taken atomic.Int64
	url := "http://" + on.Addr().String() + "/v1/take"
	for range 4 {
		callers.Go(func() {
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
			for ctx.Err() == nil {
				response, err := client.Post(url, "application/json", strings.NewReader(`{"key":"a"}`))
				if err != nil {
					t.Errorf("after %d takes: %v", taken.Load(), err)
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				if response.Body.Close(); response.StatusCode != 200 {
					t.Errorf("status %d", response.StatusCode)
				}
				taken.Add(1)
			}
		})
	}
	await := func(more int64) {
		t.Helper()
		for end, want := time.Now().Add(20*time.Second), taken.Load()+more; taken.Load() < want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) || t.Failed() {
				t.Fatalf("%d takes, want %d", taken.Load(), want)
			}
		}
	}
	for range 3 {
		await(50)
		if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := daemon.Wait(); err != nil {
			t.Errorf("a stopped daemon: %v", err)
		}
		daemon = start()
	}
	await(50)
}

func TestTheServiceManagerIsTold(t *testing.T) {
	folder := t.TempDir()
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(folder, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	hear := func(want ...string) {
		t.Helper()
		message := make([]byte, 4096)
		for {
			_ = manager.SetReadDeadline(time.Now().Add(20 * time.Second))
			n, err := manager.Read(message)
			if err != nil {
				t.Fatalf("waiting for %q: %v", want, err)
			}
			got := string(message[:n])
			if got == "WATCHDOG=1" && want[0] != got {
				continue
			}
			for _, text := range want {
				if !strings.Contains(got, text) {
					t.Fatalf("got %q, want %q", got, text)
				}
			}
			return
		}
	}
	file := filepath.Join(folder, "weir.yaml")
	writeFile(t, file, "rules: [{name: r, limit: 5/m}]")
	daemon := underManager(t, nil, []string{"NOTIFY_SOCKET=" + filepath.Join(folder, "notify"), "WATCHDOG_USEC=300000"}, "--http", "127.0.0.1:0", "--config", file)
	hear("READY=1")
	hear("WATCHDOG=1")
	hear("WATCHDOG=1")
	writeFile(t, file, "rules: [{name: r, limit: 5/m}, {name: q, limit: 5/m}]")
	hear("RELOADING=1\nMONOTONIC_USEC=")
	hear("READY=1", "STATUS=2 rules")
	writeFile(t, file, "rules: [{name: r, limit: 5/x}]")
	hear("RELOADING=1")
	hear("READY=1", "STATUS=the rules in force stay")
	if err := daemon.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	hear("RELOADING=1")
	hear("READY=1")
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	hear("STOPPING=1")
}

// An inherited admin socket lets in its callers for everything, so not every user of the machine may be one of them.
func TestAnInheritedAdminSocketIsNotOpenToAll(t *testing.T) {
	for mode, starts := range map[os.FileMode]bool{0o666: false, 0o660: true, 0o600: true} {
		folder := shortFolder(t)
		on, err := net.Listen("unix", filepath.Join(folder, "admin"))
		if err == nil {
			err = os.Chmod(on.Addr().String(), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer on.Close()
		daemon := underManager(t, on, nil, "--http", "127.0.0.1:0", "--admin", "unix:any")
		if !starts {
			if err := daemon.Wait(); err == nil || daemon.ProcessState.ExitCode() != 2 {
				t.Errorf("with a socket of mode %v the daemon ended with %v, want exit code 2", mode, err)
			}
			continue
		}
		if got := getText(t, socketClient(t, on.Addr().String()), "http://localhost/readyz"); !strings.Contains(got, "ready") {
			t.Errorf("with a socket of mode %v the daemon says %s", mode, got)
		}
	}
}

// The units are as systemd reads them. They name a binary, which is that of the test here.
func TestTheUnitsAreValid(t *testing.T) {
	testprocess.Require(t, "systemd-analyze", "systemd")
	exe, folder := "/bin/true", t.TempDir()
	for _, name := range []string{"weir.service", "weir.socket"} {
		content, err := os.ReadFile("../../../../deploy/systemd/" + name)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(folder, name), strings.ReplaceAll(string(content), "/usr/bin/weir", exe))
	}
	verify := exec.Command("systemd-analyze", "verify", "--man=no", filepath.Join(folder, "weir.service"), filepath.Join(folder, "weir.socket"))
	if out, err := verify.CombinedOutput(); err != nil || strings.Contains(string(out), folder) {
		t.Errorf("%v: %s", err, out)
	}
}
