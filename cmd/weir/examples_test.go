package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/pace"
	"github.com/weirflow/weir/cmd/weir/internal/program"
	"github.com/weirflow/weir/cmd/weir/internal/serve"
	"github.com/weirflow/weir/internal/redistest"
)

// Every example in the help works, on logs of the names that it uses, and on a daemon. The next tests try those of serve and
// pace.
func TestExamplesOfTheHelpWork(t *testing.T) {
	t.Chdir(t.TempDir())
	const line = `10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 5` + "\n"
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(line))
	_ = w.Close()
	for name, text := range map[string]string{
		"urls.txt":   "# nothing that is fetched\nftp://127.0.0.1/\n",
		"access.log": line + line, "access.log.1.gz": packed.String(),
		"requests.jsonl": `{"ts":1431857158,"request":{"headers":{"X-Api-Key":["secret"]}}}` + "\n",
		"weir.yaml":      "rules: [{name: login, match: {path: /login}, limit: 5/m}]",
		"new.yaml":       "rules: [{name: login, match: {path: /login}, limit: 10/m}]",
		"rules.d/a.yaml": "rules: [{name: login, match: {path: /login}, limit: 5/m}]",
		"weir.test.yaml": "{rules: weir.yaml, tests: [{name: t, steps: [{request: {path: /login}, expect: allow}]}]}",
		"config":         "domain: shop\ndescriptors:\n  - {key: path, rate_limit: {unit: minute, requests_per_unit: 5}}\n",
		"nginx.conf":     "limit_req_zone $uri zone=a:1m rate=1r/s; server { limit_req zone=a; }",
		"record.jsonl":   `{"time":"2026-11-22T02:30:00Z","rule":"default","key":"alice","cost":3,"allowed":true}` + "\n",
		"calls.jsonl":    `{"time":"2026-11-22T02:30:00Z","user":"alice","tokens":300}` + "\n",
	} {
		_ = os.MkdirAll(filepath.Dir(name), 0o700)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	startForExamples(t)
	server := redistest.Start(t)
	root, _ := program.Root()
	commands := append(root.Commands(), root)
	for _, command := range root.Commands() {
		commands = append(commands, command.Commands()...)
	}
	tried := 0
	for _, command := range commands {
		for example := range strings.Lines(command.Example) {
			args := exampleArgs(strings.ReplaceAll(example, "127.0.0.1:6379", server.Addr))
			if strings.Contains(example, " | ") || args[0] == "serve" || args[0] == "playground" || args[0] == "pace" || args[0] == "source" || len(args) > 1 && args[1] == "drain" ||
				slices.Contains(args, "--watch") { // needs a shell, goes on, or see below
				continue
			}
			var out, errs strings.Builder
			differs := len(args) > 1 && args[1] == "diff" // which the exit code says
			if code := program.Run(args, strings.NewReader(""), &out, &errs); (code == 1) != differs || code > 1 || out.Len() == 0 {
				t.Errorf("%s: exit %d: %s", strings.TrimSpace(example), code, errs.String())
			}
			tried++
		}
	}
	if tried < 25 {
		t.Errorf("%d examples were tried, want 25 at least", tried)
	}
}

// startForExamples starts the only daemon that this process finds.
func startForExamples(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("RUNTIME_DIRECTORY", "")
	if err := os.WriteFile("daemon.yaml", []byte("rules: [{name: login, match: {path: /login}, limit: 5/m}, {name: api, limit: 9/m}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args = []string{"weir", "serve", "--http", "127.0.0.1:0", "--config", "daemon.yaml", "--state", "weir.state"}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "try: ") {
		if path, ok := strings.CutPrefix(lines.Text(), "admin on unix:"); ok {
			if err := os.Symlink(path, "weir.sock"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// exampleArgs returns the arguments of an example, without redirections.
func exampleArgs(example string) (args []string) {
	command, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(example), "weir "), " >")
	for _, w := range word.FindAllStringSubmatch(command, -1) {
		args = append(args, w[1]+w[2])
	}
	return args
}

// Every example in the help of serve starts a daemon, on a free port and on a Redis of the test.
func TestExamplesOfServeWork(t *testing.T) {
	server, dir := redistest.Start(t), t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "weir.yaml"), []byte("rules: [{name: login, match: {path: /login}, limit: 5/m}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for example := range strings.Lines(serve.Command().Example) {
		if strings.Contains(example, "rediss://") || strings.Contains(example, "--tls-cert") { // needs a server or files for TLS
			continue
		}
		args := exampleArgs(strings.ReplaceAll(example, "127.0.0.1:6379", server.Addr))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, exe)
		cmd.Args, cmd.Dir = append(append([]string{"weir"}, args...), "--http", "127.0.0.1:0"), dir
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(out); lines.Scan() && !strings.HasPrefix(lines.Text(), "try: "); {
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v: %s", strings.TrimSpace(example), err, errs.String())
		}
		cancel()
		tried++
	}
	if tried < 12 {
		t.Errorf("%d examples were tried, want 12 at least", tried)
	}
}

// Every example in the help of pace copies its input, without the redirections and the other programs. Echo stands for a
// command.
func TestExamplesOfPaceWork(t *testing.T) {
	server := redistest.Start(t)
	examples := pace.Command().Example
	tried := 0
	for example := range strings.Lines(examples) {
		command, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(example), "weir "), " <")
		command = strings.ReplaceAll(command, "127.0.0.1:6379", server.Addr)
		var args []string
		for _, w := range word.FindAllStringSubmatch(command, -1) {
			args = append(args, w[1]+w[2])
		}
		if strings.Contains(example, " -- ") {
			args = append(args, "--", "echo")
		}
		const line = "http://a.example/b,c\n"
		var out, errs strings.Builder
		if code := program.Run(args, strings.NewReader(line), &out, &errs); code != 0 || out.String() != line {
			t.Errorf("weir %s: exit %d, wrote %q: %s", command, code, out.String(), errs.String())
		}
		tried++
	}
	if tried < 10 {
		t.Errorf("%d examples were tried, want 10 at least", tried)
	}
}
