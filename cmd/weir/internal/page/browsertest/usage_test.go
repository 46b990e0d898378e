package browsertest

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weirflow/weir/internal/testprocess"
)

// startUsage starts the example of a page of usage beside a daemon, and returns its URL.
func startUsage(t *testing.T, daemon, token string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "usage")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/weirflow/weir/examples/usage").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "WEIR_URL="+daemon, "WEIR_TOKEN="+token, "USAGE_ADDRESS=127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	process, err := testprocess.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.End)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "usage listens on "))
}

// The example page shows a customer what he has used, and no script of his gets to see anybody else.
func TestTheUsagePageShowsACustomerHisUsageAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	tokens := filepath.Join(folder, "tokens")
	var secrets []string
	for _, scopes := range [][]string{{"portal", "read:api"}, {"shop", "take"}} {
		cmd := weirCommand(t, append([]string{"token", "new"}, scopes...)...)
		var token strings.Builder
		cmd.Stderr = &token
		line, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, strings.TrimSpace(token.String()))
		file, err := os.OpenFile(tokens, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = file.Write(line)
			_ = file.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	d := &liveDaemon{t: t, socket: filepath.Join(folder, "admin"), logs: filepath.Join(folder, "log")}
	d.start("--rule", "api=quota 1000/year", "--tokens", tokens)
	for key, cost := range map[string]int{"alice": 850, "bob": 3} {
		r, err := http.NewRequest(http.MethodPost, d.traffic+"/v1/take", strings.NewReader(fmt.Sprintf(`{"rule":"api","key":%q,"cost":%d}`, key, cost)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secrets[1])
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", answer.Status, text)
		}
		_ = answer.Body.Close()
	}
	url := startUsage(t, d.traffic, secrets[0])
	b := newTab(t)
	b.do(chromedp.Navigate(url + "/?login=alice"))
	b.await(`document.getElementById('used').textContent === '850 of 1,000 used'`)
	if got := eval[float64](b, "document.getElementById('share').value"); got != 0.85 {
		t.Errorf("the bar shows %v, want 0.85", got)
	}
	if got := eval[string](b, "document.getElementById('until').textContent"); !strings.HasPrefix(got, "Until ") {
		t.Errorf("the page says %q, want the end of the window", got)
	}
	for script, want := range map[string]string{
		`post('/v1/peek', {rule, key: 'bob', cost: 0}, {Authorization: 'Bearer ' + token}).catch(String)`:                                           "403",
		`post('/v1/take', {rule, key: customer}, {Authorization: 'Bearer ' + token}).catch(String)`:                                                 "404",
		`post('/v1/token', {rule, key: 'bob'}, {Authorization: 'Bearer ' + token}).catch(String)`:                                                   "404",
		`post('/v1/peek', {rule, key: 'bob', cost: 0}).catch(String)`:                                                                               "401",
		`post('/token', {key: 'bob'}).then(t => post('/v1/peek', {rule, key: 'bob', cost: 0}, {Authorization: 'Bearer ' + t.token})).catch(String)`: "403",
	} {
		if got := eval[string](b, script); got != want {
			t.Errorf("%s: got %s, want %s", script, got, want)
		}
	}
	if strings.Contains(eval[string](b, "document.documentElement.outerHTML"), secrets[0]) {
		t.Error("the page has the token of the backend")
	}
}
