package rulefiles

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// LoadFor loads rules files for a command. Its error shows all their problems.
func LoadFor(command string, paths ...string) (*rules.Config, error) {
	config, err := Load(Options{}, paths...)
	if err != nil {
		return nil, Refused(command, err)
	}
	return config, nil
}

// Refused is rules.Refused.
var Refused = rules.Refused

// RefusedForeign returns an error of files of envoyproxy/ratelimit as one of the command.
func RefusedForeign(command string, err error) error {
	return rules.RefusedFor(command, err, "docs/reference/envoyproxy.md#keys-of-a-file lists the keys of these files, and the differences")
}

// Texts returns the limits of rules files for a command that tries limits: of each rule, plan and candidate, each text once. It
// returns none without files.
func Texts(command string, paths []string) (texts []string, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	config, err := LoadFor(command, paths...)
	if err != nil {
		return nil, err
	}
	for _, limit := range config.Limits() {
		if text := rules.LimitText(limit); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return nil, cli.Fail(fmt.Errorf("%s: --config: no rule has a limit", command), "rules that deny, or are unlimited, have none")
	}
	return texts, nil
}

// Test runs the tests of a file. The error is rules.Problems, of that file or of those that it tests.
func Test(name string) ([]rules.TestResult, error) {
	files, problems := Options{}.read([]string{name})
	if problems != nil {
		return nil, problems
	}
	return rules.Test(files[0], func(paths []string) (*rules.Config, error) {
		for i, path := range paths {
			if !filepath.IsAbs(path) {
				paths[i] = filepath.Join(filepath.Dir(name), path)
			}
		}
		return Load(Options{}, paths...)
	})
}
