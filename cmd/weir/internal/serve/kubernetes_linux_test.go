package serve

import (
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/internal/redistest"
)

// pod is what deploy/kubernetes starts.
type pod struct {
	rules string
	args  []string
}

func readPod(t *testing.T) (p pod) {
	t.Helper()
	for object := range strings.SplitSeq(readText(t, "../../../../deploy/kubernetes/weir.yaml"), "\n---\n") {
		var o struct {
			Kind string            `yaml:"kind"`
			Data map[string]string `yaml:"data"`
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Args []string `yaml:"args"`
						} `yaml:"containers"`
					} `yaml:"spec"`
				} `yaml:"template"`
			} `yaml:"spec"`
		}
		if err := yaml.Unmarshal([]byte(object), &o); err != nil {
			t.Fatal(err)
		}
		switch o.Kind {
		case "ConfigMap":
			p.rules = o.Data["weir.yaml"]
		case "Deployment":
			p.args = o.Spec.Template.Spec.Containers[0].Args
		}
	}
	if p.rules == "" || len(p.args) == 0 {
		t.Fatal("the manifests have no rules, or start nothing")
	}
	return p
}

// at sets the value of a flag that the pod has.
func (p *pod) at(t *testing.T, flag, value string) {
	t.Helper()
	i := slices.IndexFunc(p.args, func(argument string) bool { return strings.HasPrefix(argument, flag+"=") })
	if i < 0 {
		t.Fatalf("the pod has no flag %s: %q", flag, p.args)
	}
	p.args[i] = flag + "=" + value
}

// The pod of the manifests starts without a warning. Every caller may take, and the live page, which kubectl port-forward reaches at the
// loopback address of the pod, asks for a token.
func TestThePodOfTheManifestsServesItsLivePageToATokenAlone(t *testing.T) {
	t.Parallel()
	p, folder, admin := readPod(t), t.TempDir(), loopback(t)
	token, form := auth.NewToken()
	writeFile(t, filepath.Join(folder, "tokens"), "ops "+form+" admin metrics\n")
	rules := t.TempDir()
	writeFile(t, filepath.Join(rules, "weir.yaml"), p.rules)
	for _, argument := range p.args {
		if value, found := strings.CutPrefix(argument, "--admin="); found && !strings.HasPrefix(value, "127.0.0.1:") {
			t.Errorf("the admin port is at %s, want the loopback address of the pod", value)
		}
	}
	for flag, value := range map[string]string{"--http": ":0", "--grpc": ":0", "--metrics": ":0", "--admin": admin, "--tokens": filepath.Join(folder, "tokens"), "--config": rules} {
		p.at(t, flag, value)
	}
	cmd := daemonCommand(t, p.args[1:]...)
	cmd.Env = append(cmd.Environ(), "WEIR_ENGINE=redis://"+redistest.Start(t).Addr, "WEIR_DEADLINE=30s")
	log := &output{}
	cmd.Stderr = log
	url := startAndFindURL(t, cmd)
	defer func() {
		if err := stopDaemon(cmd); err != nil {
			t.Errorf("the pod ended with %v: %s", err, log)
		}
		if text := log.String(); strings.Contains(text, `"level":"WARN"`) || strings.Contains(text, `"level":"ERROR"`) {
			t.Errorf("the pod warns:\n%s", text)
		}
	}()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if got := postTake(t, "http://127.0.0.1:"+port, `{"rule":"default","key":"k"}`); !strings.HasPrefix(got, `{"allowed":true`) {
		t.Errorf("a take: got %s", got)
	}
	_, port, _ = net.SplitHostPort(admin)
	for _, c := range []struct {
		path, token string
		status      int
	}{
		{"/", "", http.StatusOK}, // the page itself, which asks for the token
		{"/v1/admin/rules", "", http.StatusUnauthorized},
		{"/v1/admin/live", "", http.StatusUnauthorized},
		{"/v1/admin/rules", token, http.StatusOK},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost:"+port+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%s with the token %.8q: %d, want %d", c.path, c.token, response.StatusCode, c.status)
		}
	}
}
