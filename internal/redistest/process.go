package redistest

import (
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync"
)

// process is a program that ends with the test.
type process struct {
	cmd      *exec.Cmd
	gone     chan struct{} // closed when the process has ended and was reaped
	watchdog io.WriteCloser
	once     sync.Once
}

// startProcess starts the program, and a shell that kills it if the test process dies. The input of the shell then
// ends before it has read a line.
func startProcess(name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), gone: make(chan struct{})}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.gone)
	}()
	shell := exec.Command("/bin/sh", "-c", `read -r line || kill -KILL "$0"`, strconv.Itoa(p.cmd.Process.Pid))
	input, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("the shell that watches over %s: %w", name, err)
	}
	p.watchdog = input
	go func() { _ = shell.Wait() }()
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// kill ends the program and returns when it has ended. It may be called more than once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
	p.once.Do(func() {
		if p.watchdog != nil {
			_, _ = io.WriteString(p.watchdog, "gone\n")
			_ = p.watchdog.Close()
		}
	})
}
