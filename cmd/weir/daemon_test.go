package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// daemon is the weir serve of one script, in its own process.
type daemon struct {
	cmd *exec.Cmd
	log *bufio.Reader // its standard error
}

type daemonKey struct{}

func theDaemon(ts *testscript.TestScript) *daemon { return ts.Value(daemonKey{}).(*daemon) }

// serveInScript starts "weir serve" with the arguments and waits for its announcement, which goes to the file banner.
// Arguments like NAME=VALUE ahead of the others are its environment.
// It sets $URL to the listening address, $ADDR to the same without the scheme, and $TRY to the suggested command
// line.
func serveInScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("serve cannot fail; use: ! exec weir serve")
	}
	exe, err := os.Executable()
	ts.Check(err)
	d := theDaemon(ts)
	d.cmd = exec.Command(exe)
	d.cmd.Env = os.Environ()
	for ; len(args) > 0 && strings.Contains(args[0], "=") && args[0][0] != '-'; args = args[1:] {
		d.cmd.Env = append(d.cmd.Env, args[0])
	}
	d.cmd.Args = append([]string{"weir", "serve"}, args...)
	d.cmd.Dir = ts.MkAbs(".")
	out, err := d.cmd.StdoutPipe()
	ts.Check(err)
	errs, err := d.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(d.cmd.Start())
	ts.Defer(func() { _ = d.cmd.Process.Kill() })
	d.log = bufio.NewReader(errs)

	banner, lines := "", bufio.NewScanner(out)
	for lines.Scan() {
		banner += lines.Text() + "\n"
		if url, ok := strings.CutPrefix(lines.Text(), "weir listens on "); ok {
			ts.Setenv("URL", url)
			ts.Setenv("ADDR", strings.TrimPrefix(url, "http://"))
		}
		if try, ok := strings.CutPrefix(lines.Text(), "try: "); ok {
			ts.Setenv("TRY", try)
			break
		}
	}
	if ts.Getenv("TRY") == "" {
		log, _ := io.ReadAll(d.log)
		ts.Fatalf("weir serve printed no line to try: %s%s", banner, log)
	}
	ts.Check(os.WriteFile(ts.MkAbs("banner"), []byte(banner), 0o600))
}

// signalInScript sends the daemon a stop signal and waits until the daemon logs it.
func signalInScript(ts *testscript.TestScript, _ bool, _ []string) {
	d := theDaemon(ts)
	ts.Check(d.cmd.Process.Signal(syscall.SIGTERM))
	line, err := d.log.ReadString('\n')
	ts.Check(err)
	if !strings.Contains(line, "msg=stopping") {
		ts.Fatalf("weir serve logged %q, not that it stops", line)
	}
}

// endInScript sends the daemon a stop signal and waits for its end. The log goes to the file log. With "!" the daemon
// must fail.
func endInScript(ts *testscript.TestScript, neg bool, _ []string) {
	d := theDaemon(ts)
	ts.Check(d.cmd.Process.Signal(syscall.SIGTERM))
	log, err := io.ReadAll(d.log)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("log"), log, 0o600))
	if err := d.cmd.Wait(); (err != nil) != neg {
		ts.Fatalf("weir serve ended with %v: %s", err, log)
	}
}

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

// hangupInScript sends the daemon a signal to reload and waits until the daemon logs the reload. With "!" it must fail.
func hangupInScript(ts *testscript.TestScript, neg bool, _ []string) {
	d := theDaemon(ts)
	ts.Check(d.cmd.Process.Signal(syscall.SIGHUP))
	for want := map[bool]string{true: "rules files have problems", false: "rules reloaded"}[neg]; ; {
		line, err := d.log.ReadString('\n')
		ts.Check(err)
		if strings.Contains(line, want) {
			return
		}
	}
}

// crashInScript kills the daemon with SIGKILL.
func crashInScript(ts *testscript.TestScript, _ bool, _ []string) {
	d := theDaemon(ts)
	ts.Check(d.cmd.Process.Kill())
	_ = d.cmd.Wait() // an error, because the process was killed
}
