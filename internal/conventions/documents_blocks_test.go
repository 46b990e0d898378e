package conventions

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file holds what Weir prints or ships for another program to a test that runs it with that program: its blocks in documents, and the
// files of deploy.

var (
	block = regexp.MustCompile("(?ms)^ *```([^\n]*)\n(.*?)^ *```$")
	// own are the languages of blocks that other tests hold to their word, or that show what is typed and printed.
	own      = []string{"", "go", "sh"}
	ownRules = regexp.MustCompile(`(?m)^(rules|tests):`)
	tagOf    = regexp.MustCompile(`^(weir|envoy|nginx|caddy|haproxy|traefik|prometheus|systemd|kubernetes|limitador)/[a-z-]+$`)
	indent   = regexp.MustCompile(`(?m)^(?: {4}|\t).*$`)
	// foreign matches lines of configurations of other programs.
	foreign = regexp.MustCompile(`(?m)^\s*(static_resources:|typed_config:|- name: envoy\.|server \{|location [^\n]*\{|upstream \w+ \{|proxy_pass |reverse_proxy |forward_auth |frontend \w+$|backend \w+$|` +
		`http-request |forwardAuth:|scrape_configs:|- alert:|\[(Unit|Service|Socket|Install)\]$|apiVersion:)`)
)

// untried are programs that the tests cannot run. A page that configures one says so.
var untried = map[string]string{
	"traefik":   "has not been tried",
	"limitador": "Coming from limitador", // shows what the reader has
}

// A block for another program has a tag that names the program, and a test that asks for the block by its tag.
func TestBlocksForOtherProgramsAreRun(t *testing.T) {
	var tests strings.Builder
	for _, f := range goFiles(t) {
		if f.test && f.pkg != "internal/conventions" {
			tests.WriteString(readFile(t, f.path))
		}
	}
	seen := map[string]string{}
	for _, document := range documents(t) {
		text := readFile(t, document)
		for _, b := range block.FindAllStringSubmatch(text, -1) {
			if fault := faultOfBlock(b[1], b[2], text, tests.String()); fault != "" {
				t.Errorf("%s: %s:\n%s", document, fault, b[2])
			}
			if _, tag, tagged := strings.Cut(b[1], " "); tagged {
				if seen[tag] != "" {
					t.Errorf("%s and %s have a block with the tag %s", document, seen[tag], tag)
				}
				seen[tag] = document
			}
		}
		for _, line := range indent.FindAllString(block.ReplaceAllString(text, ""), -1) {
			if foreign.MatchString(line) {
				t.Errorf("%s shows a line for another program outside of a block with a tag: %s", document, strings.TrimSpace(line))
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("the documents have the tags %v, want more", seen)
	}
}

// faultOfBlock says what is wrong with a block of a page.
func faultOfBlock(info, text, page, tests string) string {
	language, tag, tagged := strings.Cut(info, " ")
	switch {
	case !tagged && slices.Contains(own, language):
		if foreign.MatchString(text) {
			return "a block for another program has no language and tag"
		}
		return ""
	case !tagged && language == "yaml" && ownRules.MatchString(text) && !foreign.MatchString(text):
		return ""
	case !tagged:
		return "a block for another program has no tag, such as ```nginx nginx/check"
	case !tagOf.MatchString(tag):
		return "the tag " + tag + " names no program, as in nginx/check"
	}
	program, _, _ := strings.Cut(tag, "/")
	if words := untried[program]; words != "" {
		if !strings.Contains(page, words) {
			return "the page does not say of " + program + ": " + words
		}
		return ""
	}
	if !strings.Contains(tests, `"`+tag+`"`) {
		return "no test asks for the block " + tag
	}
	return ""
}

// The check of blocks sees each way to show one that no test runs.
func TestABlockThatNoTestRunsIsAFault(t *testing.T) {
	const tests = `Documented(t, "nginx/check")`
	for _, c := range []struct {
		info, text, page string
		fault            bool
	}{
		{"nginx nginx/check", "server {}", "", false},
		{"nginx", "listen 80;", "", true},
		{"nginx nginx/other", "server {}", "", true},
		{"nginx check", "server {}", "", true},
		{"yaml", "rules:\n  - name: a", "", false},
		{"yaml", "http_filters:\n  - name: envoy.filters.http.ratelimit", "", true},
		{"toml", "[http]", "", true},
		{"", "$ weir serve", "", false},
		{"", "location / {\n}", "", true},
		{"sh", "[Unit]\nDescription=x", "", true},
		{"yaml traefik/check", "http:", "this has not been tried", false},
		{"yaml traefik/check", "http:", "this works", true},
	} {
		if got := faultOfBlock(c.info, c.text, c.page, tests); (got != "") != c.fault {
			t.Errorf("```%s\n%s: got %q, want a fault: %v", c.info, c.text, got, c.fault)
		}
	}
}

// shipped are the tests of the files in deploy. Those for Prometheus, systemd and Kubernetes are checked by these programs or decoded as by
// them; all others run.
var shipped = map[string]string{
	"chart/.helmignore":                        "TestHelmLintsTheChart",
	"chart/Chart.yaml":                         "TestHelmLintsTheChart",
	"chart/alerts.yml":                         "TestTheDashboardAndTheAlertsAgreeWithDaemons",
	"chart/values.yaml":                        "TestTheManifestsAreRenderedFromTheChart",
	"chart/values.schema.json":                 "TestTheChartRefusesValuesThatContradictOneAnother",
	"chart/templates/NOTES.txt":                "TestHelmLintsTheChart",
	"chart/templates/_helpers.tpl":             "TestTheManifestsAreRenderedFromTheChart",
	"chart/templates/deployment.yaml":          "TestTheManifestsAreRenderedFromTheChart",
	"chart/templates/networkpolicy.yaml":       "TestTheManifestsAreRenderedFromTheChart",
	"chart/templates/poddisruptionbudget.yaml": "TestTheManifestsAreRenderedFromTheChart",
	"chart/templates/prometheus.yaml":          "TestTheManifestsAreRenderedFromTheChart",
	"chart/templates/rules.yaml":               "TestTheManifestsAreRenderedFromTheChart",
	"chart/templates/services.yaml":            "TestTheManifestsAreRenderedFromTheChart",
	"compose/compose.yaml":                     "TestTheComposeFilesLimitEachAddress",
	"compose/envoy.yaml":                       "TestTheComposeFilesLimitEachAddress",
	"compose/weir.yaml":                        "TestTheComposeFilesLimitEachAddress",
	"grafana/weir.json":                        "TestTheDashboardAndTheAlertsAgreeWithDaemons",
	"kubernetes/weir.yaml":                     "TestTheManifestsAreThoseOfKubernetesAndFitTogether",
	"packages/nfpm.yaml":                       "TestTwoBuildsOfAVersionAreEqualByteForByteAndTheirPackagesWork",
	"packages/reload.sh":                       "TestTwoBuildsOfAVersionAreEqualByteForByteAndTheirPackagesWork",
	"packages/stop.sh":                         "TestTwoBuildsOfAVersionAreEqualByteForByteAndTheirPackagesWork",
	"packages/weir.yaml":                       "TestTheRulesOfDeployAreValid",
	"prometheus/weir.rules.yml":                "TestTheDashboardAndTheAlertsAgreeWithDaemons",
	"prometheus/weir.rules.test.yml":           "TestAlertsFireInTheirCases",
	"sticky/haproxy.cfg":                       "TestAProxyKeepsEachKeyAtOneDaemon",
	"sticky/nginx.conf":                        "TestAProxyKeepsEachKeyAtOneDaemon",
	"systemd/weir.service":                     "TestTheUnitsAreValid",
	"systemd/weir.socket":                      "TestTheUnitsAreValid",
}

func TestFilesOfDeployAreRun(t *testing.T) {
	var tests strings.Builder
	for _, f := range goFiles(t) {
		if f.test {
			tests.WriteString(readFile(t, f.path))
		}
	}
	found := map[string]bool{}
	err := filepath.WalkDir("deploy", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "README.md" || strings.HasPrefix(path, filepath.Join("deploy", "deploytest")) {
			return err
		}
		name, _ := filepath.Rel("deploy", path)
		name = filepath.ToSlash(name)
		found[name] = true
		if shipped[name] == "" {
			t.Errorf("deploy/%s has no test in the list of files that are shipped", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range shipped {
		if !found[name] {
			t.Errorf("deploy/%s does not exist, and has a test in the list of files that are shipped", name)
		}
		if !strings.Contains(tests.String(), "\nfunc "+test+"(t *testing.T)") {
			t.Errorf("deploy/%s: there is no test %s", name, test)
		}
	}
}
