package main

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

func TestPackagesHaveAPageForEachCommandAndAScriptForEachShell(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", "0")
	if err := write(folder, "v0.1.0"); err != nil {
		t.Fatal(err)
	}
	has := func(path, want string) {
		t.Helper()
		if text, err := os.ReadFile(filepath.Join(folder, path)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v; it holds no %q", path, err, want)
		}
	}
	has("completions/bash/weir", "__start_weir")
	has("completions/zsh/_weir", "#compdef weir")
	has("completions/fish/weir.fish", "complete -c weir")
	has("man/weir.1", `.TH "WEIR" "1" "Jan 1970" "Weir v0.1.0" "Weir"`)
	root, _ := program.Root()
	for _, cmd := range commands(root) {
		has("man/"+strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1", cmd.Short)
	}
}

// commands returns all commands that help lists, and theirs.
func commands(of *cobra.Command) (all []*cobra.Command) {
	for _, cmd := range of.Commands() {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" {
			all = append(append(all, cmd), commands(cmd)...)
		}
	}
	return all
}

func TestTheCertificatesOfTheImageAreRead(t *testing.T) {
	folder := t.TempDir()
	if err := certificates(folder, ""); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "ca-certificates.crt"))
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(text) {
		t.Errorf("%v; x509 reads no certificate of %d bytes", err, len(text))
	}
}
