// Package testprocess runs programs that tests need, such as redis-server. A program ends with its test, even if the
// test is killed.
package testprocess

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
)

// Require skips the test if the machine has no such command, with a line that says how to install it. If the
// environment variable CI is set, the test fails instead.
func Require(t testing.TB, command, debianPackage string) {
	t.Helper()
	if _, err := exec.LookPath(command); err == nil {
		return
	}
	missing := command + " is missing; install it with: apt-get install " + debianPackage + ", or scripts/install-deps.sh"
	if os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

// Process is a program that ends with the test.
type Process struct {
	*os.Process
	gone     chan struct{} // closed when the process has ended and was reaped
	watchdog io.WriteCloser
	once     sync.Once
}

// Start starts the program, and a shell that kills it if the test process dies. The input of the shell then ends
// before it has read a line.
func Start(cmd *exec.Cmd) (*Process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{Process: cmd.Process, gone: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.gone)
	}()
	shell := exec.Command("/bin/sh", "-c", `read -r line || kill -KILL "$0"`, strconv.Itoa(p.Pid))
	input, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	if err != nil {
		p.End()
		return nil, fmt.Errorf("the shell that watches over %s: %w", cmd.Path, err)
	}
	p.watchdog = input
	go func() { _ = shell.Wait() }()
	return p, nil
}

// Ended reports whether the program has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// End kills the program and returns when it has ended. It may be called more than once.
func (p *Process) End() {
	_ = p.Kill()
	<-p.gone
	p.once.Do(func() {
		if p.watchdog != nil {
			_, _ = io.WriteString(p.watchdog, "gone\n")
			_ = p.watchdog.Close()
		}
	})
}
