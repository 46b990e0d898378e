package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// The stop of the attacked daemon: after drain it accepts no connection, and requests in flight have grace.
const (
	drain = time.Second
	grace = 5 * time.Second
	// slack is the time for the rest of a stop: the last save, and the end of a process on a busy machine.
	slack = 3 * time.Second
	// lockPatience is how long a daemon waits for its predecessor's last save.
	lockPatience = 10 * time.Second
)

// daemon is one run of weir serve.
type daemon struct {
	number   int
	address  string
	cmd      *exec.Cmd
	log      string // a file
	begun    time.Time
	ended    chan struct{} // closed when the process has ended
	stopping atomic.Bool   // it was asked to stop, or killed
}

// buildDaemon builds weir from the current checkout.
func buildDaemon(folder string) (string, error) {
	path := filepath.Join(folder, "weir")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/weirflow/weir/cmd/weir").CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the daemon: %w\n%s", err, out)
	}
	return path, nil
}

var daemons atomic.Int64

// startDaemon starts weir serve and waits for its announcement.
func startDaemon(program, folder string, patience time.Duration, flags ...string) (*daemon, error) {
	d, err := launch(program, folder, flags...)
	if err != nil {
		return nil, err
	}
	return d, d.listens(patience)
}

// launch starts weir serve and returns at once.
func launch(program, folder string, flags ...string) (*daemon, error) {
	d := &daemon{number: int(daemons.Add(1)), begun: time.Now(), ended: make(chan struct{})}
	logged, err := os.Create(filepath.Join(folder, fmt.Sprintf("log%d", d.number)))
	if err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	defer func() { _ = logged.Close() }()
	d.log = logged.Name()
	d.cmd = exec.Command(program, append([]string{"serve"}, flags...)...)
	d.cmd.Dir = folder
	d.cmd.Stderr = logged
	d.cmd.Stdout, err = os.Create(d.banner())
	if err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	_ = d.cmd.Stdout.(*os.File).Close()
	go func() {
		_ = d.cmd.Wait()
		close(d.ended)
	}()
	return d, nil
}

// banner returns the file of the daemon's standard output.
func (d *daemon) banner() string {
	return filepath.Join(d.cmd.Dir, fmt.Sprintf("banner%d", d.number))
}

// listens waits until the daemon announces its address.
func (d *daemon) listens(patience time.Duration) error {
	timeout := time.After(patience)
	for {
		if address := listensOn(d.banner()); address != "" {
			d.address = address
			return nil
		}
		select {
		case <-d.ended:
			return fmt.Errorf("daemon %d ended with %v before it listened: %s", d.number, d.cmd.ProcessState, d.tail())
		case <-timeout:
			d.kill()
			return fmt.Errorf("daemon %d did not listen within %v: %s", d.number, patience, d.tail())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func listensOn(banner string) string {
	file, err := os.Open(banner)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	line, err := bufio.NewReader(file).ReadString('\n')
	if err != nil {
		return ""
	}
	address, _ := strings.CutPrefix(strings.TrimSpace(line), "weir listens on http://")
	return address
}

// tail returns the end of the log.
func (d *daemon) tail() string {
	text, _ := os.ReadFile(d.log)
	return string(text[max(0, len(text)-2000):])
}

// signal sends a signal, which a daemon that has ended does not get.
func (d *daemon) signal(s syscall.Signal) { _ = d.cmd.Process.Signal(s) }

// kill kills the daemon.
func (d *daemon) kill() {
	d.stopping.Store(true)
	_ = d.cmd.Process.Kill()
	<-d.ended
}

// terminate asks the daemon to stop.
func (d *daemon) terminate() {
	d.stopping.Store(true)
	d.signal(syscall.SIGTERM)
}

// mostMemory bounds the resident memory of an attacked daemon, in KiB.
const mostMemory = 512 << 10

// auditMemory checks the most memory that the daemon has had. Only Linux tells it.
func (d *daemon) auditMemory(w *world) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	_, text, _ := strings.Cut(string(status), "VmHWM:")
	kib, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if peak, err := strconv.ParseInt(kib, 10, 64); err == nil {
		w.mu.Lock()
		w.memory = max(w.memory, peak)
		w.mu.Unlock()
		if peak > mostMemory {
			w.Break(promiseMemory, "daemon %d has had %d KiB of resident memory", d.number, peak)
		}
	}
}

// errStop is the error of a daemon that does not stop cleanly.
var errStop = errors.New("the daemon did not stop cleanly")

// wait waits for the end of a stopping daemon and returns what was wrong with its stop. The process has always ended
// when wait returns.
func (d *daemon) wait(since time.Time, most time.Duration) (time.Duration, error) {
	select {
	case <-d.ended:
	case <-time.After(time.Until(since.Add(most))):
		d.kill()
		return time.Since(since), fmt.Errorf("%w: it still ran %v after SIGTERM, with a drain of %v and a grace of %v, and was killed; its log: %s", errStop, most, drain, grace, d.tail())
	}
	took := time.Since(since)
	if code := d.cmd.ProcessState.ExitCode(); code != 0 {
		return took, fmt.Errorf("%w: %v after %v; its log: %s", errStop, d.cmd.ProcessState, took.Round(time.Millisecond), d.tail())
	}
	return took, nil
}
