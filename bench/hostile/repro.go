package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

// knownFault is a fault found in a day of attacks. Its probe shows whether it still exists.
type knownFault struct {
	name   string
	before string // the probe's result at commit beforeCommit
	probe  func(*prober) string
}

// beforeCommit is the last commit with all the faults.
const beforeCommit = "65a5d9f"

// prober is shared by the probes.
type prober struct {
	context.Context
	program string
	folder  string
	files   int
	many    string // the large state file, once it exists
}

// knownFaults returns the faults in the order of the table.
func knownFaults() []knownFault {
	return slices.Concat(bodyFaults, stopFaults, stateFaults, tableFaults, libraryFaults)
}

// printRepro runs every probe and prints the table.
func printRepro(ctx context.Context, c config, out, errs io.Writer) int {
	folder, err := os.MkdirTemp("", "weir-repro-")
	if err != nil {
		fmt.Fprintln(errs, "hostile:", err)
		return 2
	}
	defer func() { _ = os.RemoveAll(folder) }()
	p := &prober{Context: ctx, program: c.weir, folder: folder}
	if p.program == "" {
		if p.program, err = buildDaemon(folder); err != nil {
			fmt.Fprintln(errs, "hostile:", err)
			return 2
		}
	}
	p.program, _ = filepath.Abs(p.program)
	fmt.Fprintf(out, "| fault | before, commit %s | now, commit %s |\n|---|---|---|\n", beforeCommit, commit())
	for _, f := range knownFaults() {
		if ctx.Err() != nil {
			return 2
		}
		now := strings.ReplaceAll(p.run(f), "|", "\\|")
		fmt.Fprintf(out, "| %s | %s | %s |\n", f.name, f.before, now)
	}
	return 0
}

// run runs a probe. A panic is its result.
func (p *prober) run(f knownFault) (shown string) {
	defer func() {
		if r := recover(); r != nil {
			shown = fmt.Sprintf("panic: %v", r)
		}
	}()
	return f.probe(p)
}

// file returns a new path.
func (p *prober) file() string {
	p.files++
	return filepath.Join(p.folder, fmt.Sprintf("file%d", p.files))
}

// slowRule refills so slowly that counts stay.
const slowRule = "slow=token bucket 1/1h burst 5"

// daemon starts a daemon on a free port. It panics if that fails, since the probes need it.
func (p *prober) daemon(flags ...string) *daemon {
	d, err := startDaemon(p.program, p.folder, patience, append([]string{"--http", "127.0.0.1:0"}, flags...)...)
	if err != nil {
		panic(err)
	}
	return d
}

// stop asks a daemon to stop and describes its end, within 25 s.
func stop(d *daemon) string {
	since := time.Now()
	d.terminate()
	took, err := d.wait(since, 25*time.Second)
	switch {
	case err == nil:
		return fmt.Sprintf("exit 0 after %.1f s", took.Seconds())
	case took >= 25*time.Second:
		return "still runs 25 s after SIGTERM"
	}
	return fmt.Sprintf("exit %d after %.1f s", d.cmd.ProcessState.ExitCode(), took.Seconds())
}

// ask sends a take and returns its status and time.
func ask(d *daemon, how style, requests ...request) string {
	var c client
	defer c.close()
	r := c.ask(d.address, takePath, bodyOf(requests...), how)
	if r.outcome != answered {
		return fmt.Sprintf("no answer in %.1f s", r.took().Seconds())
	}
	return fmt.Sprintf("%d in %.1f s", r.status, r.took().Seconds())
}

// used returns the units of a key in a state file.
func used(file, ruleText, key string) string {
	content, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return "no state file"
	}
	if err != nil {
		return err.Error()
	}
	defer func() { _ = content.Close() }()
	m, err := weir.LoadMemory(content, weir.MemoryOptions{})
	if err != nil {
		return err.Error()
	}
	rule, err := weir.ParseRule(ruleText)
	if err != nil {
		return err.Error()
	}
	d, err := m.Peek(context.Background(), rule.For(key, 0))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d in the file", d.Limit-d.Remaining)
}
