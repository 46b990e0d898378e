package serve

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

// rehearsal is what the section Rehearse of docs/howto/operate.md says.
type rehearsal struct {
	file   string
	serves []string // commands
	ask    string   // body
	shows  [][]string
	ctl    string
}

var (
	yamlOfPage  = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	serveOfPage = regexp.MustCompile(`(?m)^\$ weir serve (.*redis.*)$`)
	askOfPage   = regexp.MustCompile(`(?m)^\$ curl -d '(.*)' http`)
	rowOfPage   = regexp.MustCompile(`(?m)^\| (.*) \| (.*) \|$`)
	codeOfPage  = regexp.MustCompile("`([^`]*)`")
)

func readRehearsal(t *testing.T) *rehearsal {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/howto/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Rehearse\n")
	section, _, _ = strings.Cut(section, "\n## ")
	r := &rehearsal{file: yamlOfPage.FindStringSubmatch(section)[1], ask: askOfPage.FindStringSubmatch(section)[1]}
	for _, m := range serveOfPage.FindAllStringSubmatch(section, -1) {
		r.serves = append(r.serves, m[1])
	}
	for _, row := range rowOfPage.FindAllStringSubmatch(section, -1)[1:] {
		var codes []string
		for _, c := range codeOfPage.FindAllStringSubmatch(row[2], -1) {
			codes = append(codes, c[1])
		}
		if words, ok := strings.CutPrefix(strings.Trim(row[1], "`"), "weir ctl "); ok {
			r.ctl = words
		}
		r.shows = append(r.shows, codes)
	}
	if len(r.serves) != 2 || len(r.shows) != 4 || r.ctl == "" {
		t.Fatalf("the section has %d daemons, %d steps and the command %q", len(r.serves), len(r.shows), r.ctl)
	}
	return r
}

// operated is a daemon of the rehearsal.
type operated struct{ url, metrics string }

// awaits waits until the metrics show a line that begins so. Where no number stands behind, it must be above 0.
func (d *operated) awaits(t *testing.T, lines ...string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) { // between two scrapes
		text, missing := "\n"+fetchText(t, http.DefaultClient, d.metrics), ""
		for _, line := range lines {
			value, found := "", false
			if _, rest, ok := strings.Cut(text, "\n"+line); ok {
				value, _, _ = strings.Cut(rest, "\n")
				found = value == "" || strings.HasPrefix(value, " ") && value != " 0"
			}
			if !found {
				missing = line
			}
		}
		if missing == "" {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%s has no line %s in\n%s", d.metrics, missing, text)
		}
	}
}

// Two daemons on one Redis, with a directory of rules, are under load while a rule changes, a key is blocked, and Redis is
// killed and starts again. Every request has an answer, and the metrics show what the page says.
func TestThePageOnOperationIsTrue(t *testing.T) {
	t.Parallel()
	page, server, folder := readRehearsal(t), redistest.Start(t), t.TempDir()
	rules := filepath.Join(folder, "rules")
	if err := os.Mkdir(rules, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(rules, "shop.yaml"), page.file)
	var daemons []*operated
	for _, words := range page.serves {
		metrics := loopback(t)
		words = regexp.MustCompile(`--metrics \S+`).ReplaceAllString(words, "--metrics "+metrics)
		words = regexp.MustCompile(`--http \S+`).ReplaceAllString(words, "--http 127.0.0.1:0")
		words = strings.NewReplacer("redis://127.0.0.1:6379", "redis://"+server.Addr, "unix:", "unix:"+folder+"/", "--config rules", "--config "+rules).Replace(words)
		url := startDaemon(t, append(strings.Fields(words), "--deadline", "200ms")...) // a busy machine must not look like an outage
		daemons = append(daemons, &operated{url, "http://" + metrics + "/metrics"})
	}
	both := func(step int) {
		for _, d := range daemons {
			d.awaits(t, page.shows[step]...)
		}
	}
	stop := make(chan struct{})
	var asked, unanswered atomic.Int64
	var all sync.WaitGroup
	end := sync.OnceFunc(func() { close(stop); all.Wait() })
	defer end()
	for i := range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond):
				}
				body := strings.Replace(page.ask, "203.0.113.7", fmt.Sprintf("203.0.113.%d", 20+asked.Add(1)%100), 1)
				response, err := http.Post(daemons[i%2].url+"/v1/take", "application/json", strings.NewReader(body))
				if err != nil {
					unanswered.Add(1)
					continue
				}
				if response.StatusCode != http.StatusOK {
					unanswered.Add(1)
				}
				_ = response.Body.Close()
			}
		})
	}
	writeFile(t, filepath.Join(rules, "shop.yaml"), strings.Replace(page.file, "1000/h", "5/h", 1))
	both(0)
	ctl := daemonCommand(t)
	ctl.Args = append([]string{"weir", "ctl"}, strings.Fields(strings.ReplaceAll(page.ctl, "unix:", "unix:"+folder+"/"))...)
	if out, err := ctl.CombinedOutput(); err != nil {
		t.Fatalf("weir ctl %s: %v: %s", page.ctl, err, out)
	}
	both(1)
	blocked := strings.Replace(page.ask, "203.0.113.7", "203.0.113.9", 1)
	for _, d := range daemons {
		if got := postTake(t, d.url, blocked); !strings.HasPrefix(got, `{"allowed":false`) {
			t.Errorf("the blocked key: got %s", got)
		}
	}
	server.Kill()
	both(2)
	server.Restart()
	both(3)
	end()
	if asked.Load() < 100 || unanswered.Load() > 0 {
		t.Errorf("%d of %d requests had no decision", unanswered.Load(), asked.Load())
	}
}
