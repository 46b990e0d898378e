package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv("WEIR_TEST_WORKER") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// vendor counts what it sees.
type vendor struct {
	mu       sync.Mutex
	starts   []time.Time
	now, top int // requests at once
}

func (v *vendor) ServeHTTP(http.ResponseWriter, *http.Request) {
	v.mu.Lock()
	v.starts = append(v.starts, time.Now())
	v.now++
	v.top = max(v.top, v.now)
	v.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	v.mu.Lock()
	v.now--
	v.mu.Unlock()
}

// mostIn returns the most requests that began in any stretch.
func (v *vendor) mostIn(stretch time.Duration) (most int) {
	first := 0
	for i, at := range v.starts {
		for at.Sub(v.starts[first]) >= stretch {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// Three processes on one Redis make as many requests as the vendor permits one client.
func TestThreeWorkersObeyOneVendor(t *testing.T) {
	redis := redistest.Start(t)
	v := &vendor{}
	server := httptest.NewServer(v)
	defer server.Close()
	var outputs [3]bytes.Buffer
	var workers [3]*exec.Cmd
	for i := range workers {
		workers[i] = exec.Command(os.Args[0], "redis://"+redis.Addr, server.URL, "19s") // of which a busy machine may take some to start
		workers[i].Env = append(os.Environ(), "WEIR_TEST_WORKER=1")
		workers[i].Stdout, workers[i].Stderr = &outputs[i], os.Stderr
		if err := workers[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	all := 0
	for i := range workers {
		if err := workers[i].Wait(); err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(outputs[i].String()))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("worker %d made %d requests", i+1, n)
		all += n
	}
	t.Logf("the vendor saw %d requests, at most %d in 10 s and %d at once", len(v.starts), v.mostIn(10*time.Second), v.top)
	const stretch = 9 * time.Second // a busy machine holds a request up for longer than the margin of the terms
	if most := v.mostIn(stretch); most > 100 || v.top > 5 {
		t.Errorf("the vendor saw %d requests in %v and %d at once, want at most 100 and 5", most, stretch, v.top)
	}
	if all < 190 || all != len(v.starts) { // more if a worker starts and ends late
		t.Errorf("the workers made %d requests, and the vendor saw %d; want 200 in 19 s", all, len(v.starts))
	}
}

func TestAWrongCommandLineIsExplained(t *testing.T) {
	for _, c := range []struct {
		arguments string
		code      int
		said      string
	}{
		{"", 2, "worker: 0 arguments, want 3; usage: worker REDIS VENDOR TIME, for example worker redis://"},
		{"redis://127.0.0.1:1 x", 2, "worker: 2 arguments, want 3; usage: "},
		{"redis://127.0.0.1:1 x 30", 2, `worker: time: missing unit in duration "30"`},
		{"redis://127.0.0.1:1 x 30s", 1, "worker: redislimit: open: no Redis answers at 127.0.0.1:1"},
	} {
		command := exec.Command(os.Args[0], strings.Fields(c.arguments)...)
		command.Env = append(os.Environ(), "WEIR_TEST_WORKER=1")
		out, _ := command.CombinedOutput()
		if code := command.ProcessState.ExitCode(); code != c.code || !strings.HasPrefix(string(out), c.said) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("worker %s: exit %d, %q; want exit %d and one line, %q", c.arguments, code, out, c.code, c.said)
		}
	}
}
