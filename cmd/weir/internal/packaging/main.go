// Command packaging writes what packages have beside the program into a folder: man pages, the completions of shells,
// and the certificates of public authorities, for the container image.
package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: packaging FOLDER VERSION")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func write(folder, version string) error {
	for _, of := range []func(string, string) error{manPages, completions, certificates} {
		if err := of(folder, version); err != nil {
			return err
		}
	}
	return nil
}

// manPages writes a page for each command. Their date is that of SOURCE_DATE_EPOCH.
func manPages(folder, version string) error {
	folder = filepath.Join(folder, "man")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, _ := program.Root()
	withoutGenerator(root)
	return doc.GenManTree(root, &doc.GenManHeader{Title: "WEIR", Section: "1", Source: "Weir " + version, Manual: "Weir"}, folder)
}

// withoutGenerator leaves out the section that names the generator of the pages.
func withoutGenerator(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	for _, sub := range cmd.Commands() {
		withoutGenerator(sub)
	}
}

// completions writes a script for each shell, under the name that the shell looks for.
func completions(folder, _ string) error {
	for shell, name := range map[string]string{"bash": "bash/weir", "zsh": "zsh/_weir", "fish": "fish/weir.fish"} {
		var out, errs bytes.Buffer
		if code := program.Run([]string{"completion", shell}, nil, &out, &errs); code != 0 {
			return fmt.Errorf("completions: weir completion %s exits with %d: %s", shell, code, &errs)
		}
		if err := writeFile(filepath.Join(folder, "completions", name), out.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func certificates(folder, _ string) error {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(folder, "ca-certificates.crt"), out.Bytes())
}

func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
