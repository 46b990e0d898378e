package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// manyRules writes a file of rules that all have the same part without effect.
func manyRules(t *testing.T, n int) (file string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: svc%02d, key: header.tenant, limit: 10/s}\n", i)
	}
	file = filepath.Join(t.TempDir(), "weir.yaml")
	writeFile(t, file, b.String())
	return file
}

// announced starts a daemon, stops it once it has announced itself, and returns what it has printed.
func announced(t *testing.T, args ...string) (out, log string) {
	t.Helper()
	cmd := daemonCommand(t, args...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text, read := []byte{}, make([]byte, 4096)
	for !bytes.Contains(text, []byte("/v1/take")) {
		n, err := pipe.Read(read)
		if text = append(text, read[:n]...); err != nil {
			t.Fatalf("the daemon has ended: %s%s", text, &errs)
		}
	}
	rest := make(chan []byte, 1)
	go func() { b, _ := io.ReadAll(pipe); rest <- b }()
	if err := stopDaemon(cmd); err != nil {
		t.Fatalf("%v: %s", err, &errs)
	}
	return string(append(text, <-rest...)), errs.String()
}

// Everything that a daemon prints with --log-format json is JSON, line by line, so that a collector of logs understands it.
func TestWithJSONEveryLineIsJSON(t *testing.T) {
	t.Parallel()
	out, log := announced(t, "--http", "127.0.0.1:0", "--log-format", "json", "--config", manyRules(t, 40))
	for line := range strings.Lines(out + log) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
	var line struct {
		Msg, Level, Address, Try string
		Also                     map[string]string
		Rules                    []string
		More                     int `json:"more_rules"`
		Time                     time.Time
	}
	if err := json.Unmarshal([]byte(out), &line); err != nil || line.Msg != "weir listens" || line.Level != "INFO" || !strings.HasPrefix(line.Address, "http://127.0.0.1:") ||
		!strings.HasPrefix(line.Also["admin"], "unix:") || len(line.Rules) != 10 || line.More != 30 || !strings.HasSuffix(line.Try, line.Address+"/v1/take") || line.Time.IsZero() {
		t.Errorf("the announcement is %s (%v)", out, err)
	}
}

// A daemon that cannot start, or whose flags are wrong, says so in JSON, too.
func TestWithJSONAnErrorIsJSON(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"files": {"--config", filepath.Join(t.TempDir(), "none.yaml")}, "flags": {"--max-connections", "0"}} {
		cmd := daemonCommand(t, append([]string{"--log-format", "json", "--http", "127.0.0.1:0"}, args...)...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err == nil || out.Len() > 0 {
			t.Errorf("%s: it printed %s and ended with %v, want an error alone", name, &out, err)
		}
		var line struct {
			Msg, Level string
			Hints      []string
			Code       int
		}
		if err := json.Unmarshal(errs.Bytes(), &line); err != nil || line.Level != "ERROR" || line.Msg == "" || len(line.Hints) == 0 || line.Code != cmd.ProcessState.ExitCode() {
			t.Errorf("%s: it printed %s (%v), want one line of JSON", name, &errs, err)
		}
	}
}

// What holds for forty rules is one line, and the announcement has ten rules.
func TestOneThingIsSaidOnce(t *testing.T) {
	t.Parallel()
	file := manyRules(t, 40)
	out, log := announced(t, "--http", "127.0.0.1:0", "--config", file)
	if got := strings.Count(out, "\nrule svc"); got != 10 || !strings.Contains(out, "\nand 30 rules more: weir ctl rules lists all\n") {
		t.Errorf("the announcement has %d rules, want 10 and the number of the others:\n%s", got, out)
	}
	if got := strings.Count(log, "has no effect as it stands"); got != 1 || !strings.Contains(log, "places=40 also=\"") || !strings.Contains(log, file+":3, ") || !strings.Contains(log, ", 34 others") {
		t.Errorf("%d lines say that a key has no effect, want one with the places:\n%s", got, log)
	}
}
