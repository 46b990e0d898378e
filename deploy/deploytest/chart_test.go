package deploytest

import (
	"flag"
	"os"
	"path"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

var writes = flag.Bool("write", false, "write deploy/kubernetes and the renderings in testdata")

const (
	chartFolder   = "../chart"
	manifestsFile = "../kubernetes/weir.yaml"
)

// above stands above the manifests that are for kubectl.
const above = `# Weir for the pods of its namespace and the gateways: three replicas that share their limits through the Redis of the secret.
#
#   weir token new ops admin metrics > tokens
#   kubectl create secret generic weir --from-literal=engine=redis://redis:6379 --from-file=tokens
#   kubectl apply -f weir.yaml
#
# Replace the image by that of your registry. deploy/chart has made this file, with the values as they are; make deploy compares the two.
`

// valuesOf reads a file of values. No name is none.
func valuesOf(t *testing.T, file string) map[string]any {
	t.Helper()
	if file == "" {
		return map[string]any{}
	}
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = text.Close() }()
	values, err := loader.LoadValues(text)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// render returns what helm template prints, in the order in which Helm installs it.
func render(values map[string]any) (objects []string, err error) {
	chart, err := loader.LoadDir(chartFolder)
	if err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: "weir", Namespace: "limits", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	for name := range files {
		if path.Ext(name) == ".txt" {
			delete(files, name)
		}
	}
	_, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	for _, m := range manifests {
		objects = append(objects, strings.TrimSpace(m.Content)+"\n")
	}
	return objects, err
}

// renderings are the sets of values that are rendered, and the files that hold the results.
var renderings = map[string]string{
	"":                         manifestsFile,
	"testdata/production.yaml": "testdata/production.rendered.yaml",
	"testdata/alone.yaml":      "testdata/alone.rendered.yaml",
}

// There is one source: the manifests for kubectl are the chart with its own values.
func TestTheManifestsAreRenderedFromTheChart(t *testing.T) {
	for values, file := range renderings {
		objects, err := render(valuesOf(t, values))
		if err != nil {
			t.Fatalf("%q: %v", values, err)
		}
		text := strings.Join(objects, "---\n")
		if values == "" {
			text = above + text
		}
		if *writes {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		held, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(held) != text {
			t.Errorf("%s is not what the chart renders with the values %q; write it with: go test -C deploy/deploytest -write", file, values)
		}
	}
}

func TestHelmLintsTheChart(t *testing.T) {
	for values := range renderings {
		for _, m := range lint.RunAll(chartFolder, valuesOf(t, values), "limits").Messages {
			if m.Severity >= support.InfoSev {
				t.Errorf("with the values %q: %v", values, m)
			}
		}
	}
}

// What would admit more than the limits, or never get ready, is an error of the rendering that says what to do.
func TestTheChartRefusesValuesThatContradictOneAnother(t *testing.T) {
	for text, want := range map[string]string{
		"engine: {secret: ''}":                                     "replicas above 1 need engine.secret",
		"{insecure: false, tokens: {secret: ''}}":                  "insecure: false needs tokens.secret",
		"tls: {clientCA: true}":                                    "tls.clientCA needs tls.secret and tokens.secret",
		"{tls: {secret: a, clientCA: true}, tokens: {secret: ''}}": "tls.clientCA needs tls.secret and tokens.secret",
		"replica: 3":                       "additional properties 'replica' not allowed",
		"peers: many":                      "/peers",
		"onFailure: open":                  "/onFailure",
		"drain: 1h":                        "/drain",
		"networkPolicy: {namespaces: [a]}": "additional properties 'namespaces' not allowed",
	} {
		values, err := loader.LoadValues(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := render(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want one with %q", text, err, want)
		}
	}
}

// Two releases in one namespace share no name and no pod.
func TestAReleaseOfAnotherNameIsApart(t *testing.T) {
	chart, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(chart, map[string]any{}, common.ReleaseOptions{Name: "shop", Namespace: "limits"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		for line := range strings.Lines(text) {
			if strings.TrimSpace(line) == "name: weir" || strings.TrimSpace(line) == "app.kubernetes.io/instance: weir" {
				t.Errorf("%s of the release shop has the line %q", name, line)
			}
		}
	}
}
