package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

var argument = regexp.MustCompile(`(?m)^ +- (--[a-z-]+=?\S*)$`)

func TestTheFilesOfDeployStartWeirWithFlagsThatItHas(t *testing.T) {
	rendered := "../../deploy/deploytest/testdata/"
	for _, path := range []string{"../../deploy/compose/compose.yaml", "../../deploy/kubernetes/weir.yaml", rendered + "production.rendered.yaml", rendered + "alone.rendered.yaml"} {
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
