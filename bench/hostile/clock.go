package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// The attacked daemon is built with a wall clock that this program sets: its copy of internal/clock adds the
// nanoseconds in a file to the wall clock. The program that users build has no such hook.
const (
	clockVariable = "HOSTILE_WALL_CLOCK" // names the file
	clockPackage  = "github.com/weirflow/weir/internal/clock"
	clockReads    = "return int64(now.Sub(start)), now.UnixNano()"
	clockHook     = `package clock

import (
	"os"
	"strconv"
)

func wallStep() int64 {
	text, _ := os.ReadFile(os.Getenv("` + clockVariable + `"))
	step, _ := strconv.ParseInt(string(text), 10, 64)
	return step
}
`
)

// clockOverlay writes the files that go build -overlay puts in the place of the clock's, and returns their list.
func clockOverlay(folder string) (string, error) {
	source, err := exec.Command("go", "list", "-f", "{{.Dir}}", clockPackage).Output()
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", clockPackage, err)
	}
	dir := strings.TrimSpace(string(source))
	text, err := os.ReadFile(filepath.Join(dir, "clock.go"))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), clockReads); n != 1 {
		return "", fmt.Errorf("the default clock of %s has %d lines %q, want 1", clockPackage, n, clockReads)
	}
	replace := make(map[string]string)
	for name, content := range map[string]string{
		"clock.go":     strings.Replace(string(text), clockReads, clockReads+" + wallStep()", 1),
		"wall_step.go": clockHook,
	} {
		replace[filepath.Join(dir, name)] = filepath.Join(folder, name)
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	list, _ := json.Marshal(map[string]any{"Replace": replace})
	path := filepath.Join(folder, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

// wallClock is the wall clock of the attacked daemons.
type wallClock struct {
	file string

	mu    sync.Mutex
	ahead int64
	steps []wallStep
}

// wallStep is a change of the wall clock.
type wallStep struct {
	at   int64 // nanoseconds since the start of the run
	by   int64
	back bool
}

// noticed bounds the time after which a daemon has noticed a step: it looks once a second.
const noticed = int64(5e9)

// set sets how far the wall clock of the daemons is ahead.
func (c *wallClock) set(now, ahead int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.file + ".next"
	if err := os.WriteFile(next, strconv.AppendInt(nil, ahead, 10), 0o600); err != nil {
		return err
	}
	c.steps = append(c.steps, wallStep{at: now, by: abs(ahead - c.ahead), back: ahead < c.ahead})
	c.ahead = ahead
	return os.Rename(next, c.file)
}

// loose returns how much longer or shorter the time from one instant to another may be on the daemon's clock: by the
// steps between them, and by an eighth while the clock waits for a wall clock that was set back.
func (c *wallClock) loose(from, to int64) (loose int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slow := false
	for _, s := range c.steps {
		if s.at <= to && from <= s.at+noticed {
			loose += s.by
		}
		slow = slow || s.back && s.at <= to && from <= s.at+noticed+8*s.by
	}
	if slow {
		loose += (to-from)/8 + 1
	}
	return loose
}
