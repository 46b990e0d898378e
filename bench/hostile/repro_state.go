package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stateFaults concern state files.
var stateFaults = []knownFault{
	{"two daemons on one file of 600,000 keys save in turn for 8 s", "both serve; 4 of 59 copies cannot be loaded", (*prober).two},
	{"two daemons on one file are killed while they save, 25 times", "2 of 25 files cannot be loaded", (*prober).twoKilled},
	{"a daemon starts while the one before it stops, 25 times", "the last one did not stop cleanly 4 times, the next one did not start 5 times, 0 files cannot be loaded", (*prober).overlap},
	{"--state is a symlink that leads nowhere", "starts, and replaces the link by a file", (*prober).dangling},
	{"--state ''", "starts", func(p *prober) string { return p.refused("--state", "") }},
}

// large returns a state file of 600,000 keys, so that a save takes a while.
func (p *prober) large() string {
	if p.many != "" {
		return p.many
	}
	file := p.file()
	p.many = file
	d := p.daemon("--state", file, "--state-every", "0", "--rule", "default=token bucket 1/1h burst 5")
	var c client
	defer c.close()
	for i := range 6000 {
		var requests []request
		for j := range 100 {
			requests = append(requests, request{"default", fmt.Sprint(i, j), 1})
		}
		c.ask(d.address, takePath, bodyOf(requests...), style{})
	}
	stop(d)
	return file
}

// copyOf copies the large file.
func (p *prober) copyOf(file string) string {
	path := p.file()
	content, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		panic(err)
	}
	return path
}

// pair starts two daemons on a file. The second may still be waiting for the file, or have ended.
func (p *prober) pair(file string) (first, second *daemon) {
	flags := []string{"--http", "127.0.0.1:0", "--state", file, "--state-every", "0"}
	first = p.daemon("--state", file, "--state-every", "0")
	second, err := launch(p.program, p.folder, flags...)
	if err != nil {
		panic(err)
	}
	for since := time.Now(); time.Since(since) < time.Second && listensOn(second.banner()) == ""; {
		time.Sleep(5 * time.Millisecond)
	}
	return first, second
}

func (p *prober) two() string {
	file := p.copyOf(p.large())
	first, second := p.pair(file)
	defer first.kill()
	defer second.kill()
	served := "the second one waits"
	if listensOn(second.banner()) != "" {
		served = "both serve"
	}
	copies, bad := 0, 0
	for since := time.Now(); time.Since(since) < 8*time.Second; copies++ {
		first.signal(syscall.SIGUSR1)
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		if served == "both serve" { // a signal would end a daemon that is still starting
			second.signal(syscall.SIGUSR1)
		}
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		if content, err := os.ReadFile(file); err == nil && load(content) != nil {
			bad++
		}
	}
	return fmt.Sprintf("%s; %d of %d copies cannot be loaded", served, bad, copies)
}

func (p *prober) twoKilled() string {
	base, bad := p.large(), 0
	for range 25 {
		file := p.copyOf(base)
		first, second := p.pair(file)
		first.signal(syscall.SIGUSR1)
		time.Sleep(time.Duration(5+rand.IntN(20)) * time.Millisecond)
		if listensOn(second.banner()) != "" {
			second.signal(syscall.SIGUSR1)
		}
		time.Sleep(time.Duration(10+rand.IntN(30)) * time.Millisecond)
		first.kill()
		second.kill()
		if loadable(file) != nil {
			bad++
		}
	}
	return fmt.Sprintf("%d of 25 files cannot be loaded", bad)
}

func (p *prober) overlap() string {
	base, unclean, failed, bad := p.large(), 0, 0, 0
	for range 25 {
		file := p.copyOf(base)
		flags := []string{"--http", "127.0.0.1:0", "--state", file, "--state-every", "0"}
		first := p.daemon(flags[2:]...)
		next, err := launch(p.program, p.folder, flags...)
		if err != nil {
			panic(err)
		}
		time.Sleep(time.Duration(20+rand.IntN(100)) * time.Millisecond)
		since := time.Now()
		first.terminate()
		if _, err := first.wait(since, 25*time.Second); err != nil {
			unclean++
		}
		if next.listens(lockPatience+slack) != nil {
			failed++
		} else {
			next.kill()
		}
		if loadable(file) != nil {
			bad++
		}
	}
	return fmt.Sprintf("the last one did not stop cleanly %d times, the next one did not start %d times, %d files cannot be loaded", unclean, failed, bad)
}

func (p *prober) dangling() string {
	link, target := p.file(), p.file()
	if err := os.Symlink(filepath.Base(target), link); err != nil {
		return err.Error()
	}
	shown := p.refused("--state", link)
	if shown != "starts" {
		return shown
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		return "starts, and replaces the link by a file"
	}
	if _, err := os.Stat(target); err != nil {
		return "starts, and writes elsewhere"
	}
	return "starts, and follows the link"
}

// refused describes how a daemon refuses its flags.
func (p *prober) refused(flags ...string) string {
	d, err := launch(p.program, p.folder, append([]string{"--http", "127.0.0.1:0"}, flags...)...)
	if err != nil {
		return err.Error()
	}
	if d.listens(patience) == nil {
		stop(d)
		return "starts"
	}
	first, _, _ := strings.Cut(d.log.tail(), "\n")
	return fmt.Sprintf("exit %d: %s", d.cmd.ProcessState.ExitCode(), strings.ReplaceAll(first, p.folder+"/", ""))
}
