package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"syscall"
)

// logPipe is the standard error of a daemon: a named pipe with a reader that can stall. The daemon's end blocks, like
// any pipe of a shell.
type logPipe struct {
	daemon *os.File // the daemon's end
	filler *os.File // a second, non-blocking writer
	reader *os.File

	mu      sync.Mutex
	changed *sync.Cond
	stalls  int // the reader waits while there are any
	waiting bool
	last    []string
	ended   chan struct{}
}

// keptLines is the number of log lines that a report can quote.
const keptLines = 12

func newLogPipe(path string) (*logPipe, error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("log pipe %s: %w", path, err)
	}
	p := &logPipe{ended: make(chan struct{})}
	p.changed = sync.NewCond(&p.mu)
	for _, end := range []struct {
		file **os.File
		mode int
	}{{&p.reader, os.O_RDONLY | syscall.O_NONBLOCK}, {&p.filler, os.O_WRONLY | syscall.O_NONBLOCK}, {&p.daemon, os.O_WRONLY}} {
		file, err := os.OpenFile(path, end.mode, 0)
		if err != nil {
			return nil, fmt.Errorf("log pipe: %w", err)
		}
		*end.file = file
	}
	go p.read()
	return p, nil
}

// read reads the pipe, except while it is stalled.
func (p *logPipe) read() {
	defer close(p.ended)
	rest, buffer := "", make([]byte, 4096)
	for {
		p.mu.Lock()
		for p.stalls > 0 {
			p.waiting = true
			p.changed.Broadcast()
			p.changed.Wait()
		}
		p.waiting = false
		p.mu.Unlock()
		n, err := p.reader.Read(buffer)
		rest += string(buffer[:n])
		for {
			line, after, whole := strings.Cut(rest, "\n")
			if !whole {
				break
			}
			rest = after
			p.keep(strings.TrimLeft(line, filling))
		}
		rest = strings.TrimLeft(rest, filling)
		if err != nil {
			return
		}
	}
}

func (p *logPipe) keep(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.last) == keptLines {
		p.last = append(p.last[:0], p.last[1:]...)
	}
	p.last = append(p.last, line)
}

// filling is the text that fills a stalled pipe.
const filling = "~"

// stall stops the reader and fills the pipe to the last byte.
func (p *logPipe) stall() error {
	p.mu.Lock()
	p.stalls++
	p.mu.Unlock()
	if err := p.fill(); err != nil { // wakes a pending read
		return err
	}
	p.mu.Lock()
	for p.stalls > 0 && !p.waiting {
		p.changed.Wait()
	}
	p.mu.Unlock()
	return p.fill()
}

// fill writes to the pipe until nothing more fits.
func (p *logPipe) fill() error {
	raw, err := p.filler.SyscallConn()
	if err != nil {
		return fmt.Errorf("log pipe: %w", err)
	}
	for _, chunk := range []string{strings.Repeat(filling, 4096), filling} {
		for full := false; !full; {
			if err := raw.Write(func(fd uintptr) bool {
				_, err := syscall.Write(int(fd), []byte(chunk))
				full = err != nil
				return true
			}); err != nil {
				return fmt.Errorf("log pipe: %w", err)
			}
		}
	}
	return nil
}

// flow ends a stall. The reader continues after the last one.
func (p *logPipe) flow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalls--
	p.changed.Broadcast()
}

// close closes the pipe after the daemon has ended, and reads the rest.
func (p *logPipe) close() {
	p.mu.Lock()
	p.stalls = math.MinInt32 // no later stall takes effect
	p.changed.Broadcast()
	p.mu.Unlock()
	_ = p.filler.Close()
	<-p.ended
	_ = p.reader.Close()
}

// tail returns the end of the log.
func (p *logPipe) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.last, "\n")
}
