package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/xdstest"
)

// left asks once and returns the code, and of the limit that is shown its name and what is left.
func (d *pushedDaemon) left(route, value string) string {
	d.t.Helper()
	code, a := d.ask("default/eg/http", route, "rule-0-match-0", value)
	if a == nil {
		return code
	}
	s := a.Statuses[0]
	text := code + " " + s.CurrentLimit.GetUnit().String()
	if s.LimitRemaining < 1000 {
		text += " " + string(rune('0'+s.LimitRemaining))
	}
	return text
}

// overlay is a rule that adds, for one value of a header, and one that replaces the limit of another route.
const overlay = `
rules:
  - name: few
    match: {domain: default/eg/http, descriptor.rule-0-match-0: "few*"}
    key: descriptor.rule-0-match-0
    limit: fixed window 2/d
    message: Too few are left.
  - name: monthly
    replaces: shop/rule/0.rule-0-match-0
    limit: quota 2/month in Europe/Paris
`

func TestAnOverlayAddsToPushedRulesAndReplacesThem(t *testing.T) {
	t.Parallel()
	plane := xdstest.Start(t, "envoy-ratelimit")
	file := filepath.Join(t.TempDir(), "overlay.yaml")
	writeFile(t, file, overlay)
	d := startPushed(t, plane.Addr, []string{"WEIR_OVERLAY=" + file})
	resource := xdstest.Resource("default/eg/http", xdstest.Route("backend", hour("rule-0-match-0", 5)), xdstest.Route("shop", hour("rule-0-match-0", 9)))
	plane.Push("1", resource)
	plane.Accepted("1")

	d.want("without a rule of the overlay", d.left("backend", "u"), "OK HOUR 4")
	d.want("the rule that adds is tighter", d.left("backend", "few1"), "OK DAY 1")
	d.want("the rule that adds", d.left("backend", "few1"), "OK DAY 0")
	d.want("the rule that adds refuses", d.left("backend", "few1"), "OVER_LIMIT DAY 0")
	d.want("the rule that adds refuses", d.left("backend", "few1"), "OVER_LIMIT DAY 0")
	d.want("another key of the rule that adds", d.left("backend", "few2"), "OK DAY 1")
	d.want("the rule that replaces", d.left("shop", "a"), "OK MONTH 1")
	d.want("the rule that replaces", d.left("shop", "a"), "OK MONTH 0")
	d.want("the rule that replaces refuses", d.left("shop", "a"), "OVER_LIMIT MONTH 0")
	d.want("its key is that of the pushed limit", d.left("shop", "b"), "OK MONTH 1")

	text := getText(t, d.admin, "http://localhost/v1/admin/rules")
	for _, want := range []string{`"rule":"monthly"`, `"name":"replaces","text":"shop/rule/0.rule-0-match-0"`, `"rule":"backend/rule/0.rule-0-match-0"`} {
		if !strings.Contains(text, want) {
			t.Errorf("/v1/admin/rules lacks %s: %s", want, text)
		}
	}

	for value, wants := range map[string][]string{
		"backend few1": {"few, " + file, "retry after", "unless that refuses, the limit \"backend/rule/0.rule-0-match-0\" of the control plane decides, too", "pushed by"},
		"backend u":    {`the limit "backend/rule/0.rule-0-match-0" of the control plane decides`, "\nbackend/rule/0.rule-0-match-0, default/eg/http\n"},
		"shop a":       {"monthly, " + file, `the limit "shop/rule/0.rule-0-match-0" of the control plane is not counted: rule "monthly" stands in its place`},
		"none a":       {"admitted: the control plane has no limit for this descriptor"},
	} {
		route, header, _ := strings.Cut(value, " ")
		out := d.ctl("explain", "--admin", d.adminAt, "domain=default/eg/http", "descriptor."+xdstest.RouteKey(route)+"="+xdstest.RouteKey(route), "descriptor.rule-0-match-0="+header)
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("weir explain for %s lacks %q:\n%s", value, want, out)
			}
		}
	}

	writeFile(t, file, "rules:\n  - name: other\n    match: {domain: nowhere}\n    limit: 1/s\n")
	d.awaitLog("overlay reloaded")
	d.want("what the overlay refused was not counted", d.left("backend", "few1"), "OK HOUR 2")
	d.want("what was replaced was not counted", d.left("shop", "a"), "OK HOUR 8")

	writeFile(t, file, "rules: 7\n")
	d.awaitLog("the overlay has problems")
	plane.Push("2", resource, gatewayListener("default/eg/https", 1))
	plane.Accepted("2")
	d.want("after a push beside a bad overlay", d.left("shop", "a"), "OK HOUR 7")
}

func TestAnOverlayThatReplacesNothingIsNamed(t *testing.T) {
	t.Parallel()
	plane := xdstest.Start(t, "envoy-ratelimit")
	file := filepath.Join(t.TempDir(), "overlay.yaml")
	writeFile(t, file, "rules: [{name: mine, replaces: no such, limit: 1/s}]\n")
	d := startPushed(t, plane.Addr, nil, "--overlay", file)
	plane.Push("1", gatewayListener("default/eg/http", 5))
	plane.Accepted("1")
	d.awaitLog("no pushed limit is named no such")
}

// A rule of an overlay with the name of a pushed limit keeps it; the limit gets a suffix.
func TestARuleOfAnOverlayKeepsItsName(t *testing.T) {
	t.Parallel()
	plane := xdstest.Start(t, "envoy-ratelimit")
	file := filepath.Join(t.TempDir(), "overlay.yaml")
	writeFile(t, file, "rules: [{name: backend/rule/0.rule-0-match-0, match: {domain: default/eg/http}, limit: fixed window 1/d}]\n")
	d := startPushed(t, plane.Addr, nil, "--overlay", file)
	plane.Push("1", gatewayListener("default/eg/http", 5))
	plane.Accepted("1")
	d.want("both rules", d.left("backend", "u"), "OK DAY 0")
	d.want("both rules", d.left("backend", "v"), "OVER_LIMIT DAY 0")
	if text := getText(t, d.admin, "http://localhost/v1/admin/rules"); !strings.Contains(text, `"rule":"backend/rule/0.rule-0-match-0#`) {
		t.Errorf("the pushed limit has no suffix: %s", text)
	}
}

func TestAnOverlayHasRulesAloneAndAControlPlaneBelow(t *testing.T) {
	t.Parallel()
	in := t.TempDir()
	file := func(name, text string) string {
		writeFile(t, filepath.Join(in, name), text)
		return filepath.Join(in, name)
	}
	good, pushes := file("good.yaml", overlay), []string{"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL=127.0.0.1:1"}
	for _, c := range []struct {
		args        []string
		environment []string
		want        string
	}{
		{[]string{"--compat", "envoyproxy", "--overlay", file("deny.yaml", "default: deny\n"+overlay)}, pushes, "default: deny has no place in a file of --overlay"},
		{[]string{"--compat", "envoyproxy", "--overlay", file("engine.yaml", "engine: memory\n"+overlay)}, pushes, "engine, peers or deadline has no place"},
		{[]string{"--compat", "envoyproxy", "--overlay", file("bad.yaml", "rules: [{name: a, replaces: x}]")}, pushes, "has no limit"},
		{[]string{"--compat", "envoyproxy", "--overlay", good, "--config", in}, nil, "--overlay with rules in files"},
		{[]string{"--overlay", good}, nil, "--overlay without --compat envoyproxy"},
		{[]string{"--config", good}, nil, `the rule "monthly" of ` + good + " replaces a limit that a control plane pushes"},
		{[]string{"--compat", "envoyproxy", "--config", good}, pushes, "the control plane has the rules"},
	} {
		cmd := daemonCommand(t, append(c.args, "--http", "127.0.0.1:0")...)
		cmd.Env = append(append(os.Environ(), "GRPC_PORT=0"), c.environment...)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: got %v: %s, want %q", c.args, err, out, c.want)
		}
	}
}
