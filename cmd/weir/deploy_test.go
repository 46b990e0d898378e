package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/program"
	"github.com/weirflow/weir/internal/redistest"
)

var argument = regexp.MustCompile(`(?m)^ +- (--[a-z-]+=?\S*)$`)

func TestTheFilesOfDeployStartWeirWithFlagsThatItHas(t *testing.T) {
	for _, path := range []string{"../../deploy/compose/compose.yaml", "../../deploy/kubernetes/weir.yaml"} {
		var arguments []string
		for _, match := range argument.FindAllStringSubmatch(readText(t, path), -1) {
			arguments = append(arguments, match[1])
		}
		if len(arguments) < 5 {
			t.Errorf("%s starts weir with %q, want more", path, arguments)
		}
		root, _ := program.Root()
		serve, _, err := root.Find([]string{"serve"})
		if err != nil {
			t.Fatal(err)
		}
		if err := serve.ParseFlags(arguments); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The daemon of the Compose file starts with its arguments, on free ports and on a Redis of the test.
func TestTheDaemonOfComposeStarts(t *testing.T) {
	text, dir := readText(t, "../../deploy/compose/compose.yaml"), t.TempDir()
	text = strings.NewReplacer("/etc/weir", "../../deploy/compose/weir.yaml", "/run/weir", dir, "redis:6379", redistest.Start(t).Addr).Replace(text)
	text = regexp.MustCompile(`0\.0\.0\.0:\d+`).ReplaceAllString(text, "127.0.0.1:0")
	args := []string{"weir", "serve"}
	for _, match := range argument.FindAllStringSubmatch(text, -1) {
		args = append(args, match[1])
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	var errs strings.Builder
	cmd.Args, cmd.Stderr = args, &errs
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
		t.Errorf("%q: %v: %s", args, err, errs.String())
	}
}

func TestTheRulesOfDeployAreValid(t *testing.T) {
	folder := t.TempDir()
	_, config, found := strings.Cut(readText(t, "../../deploy/kubernetes/weir.yaml"), "  weir.yaml: |\n")
	if !found {
		t.Fatal("the manifests hold no rules")
	}
	config, _, _ = strings.Cut(config, "---\n")
	inManifest := filepath.Join(folder, "weir.yaml")
	if err := os.WriteFile(inManifest, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{inManifest, "../../deploy/compose/weir.yaml", "../../deploy/packages/weir.yaml"} {
		var out, errs bytes.Buffer
		if code := program.Run([]string{"rules", "lint", path}, nil, &out, &errs); code != 0 || !strings.Contains(out.String(), ": 1 rule") {
			t.Errorf("%s: exit code %d, %s%s", path, code, &out, &errs)
		}
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
